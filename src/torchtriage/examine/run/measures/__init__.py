"""The figures of a run, by the names of the interface."""
