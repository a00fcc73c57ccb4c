"""A training program executed on abstract values: what its steps do, whatever files and calls it goes through."""
