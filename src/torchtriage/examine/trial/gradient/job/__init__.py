"""The part of a gradient's trial that runs in the user's Python: the standard library and the user's own torch only."""
