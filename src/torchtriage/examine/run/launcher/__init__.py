"""Starts a job with the probes in its environment, passes signals on, and tells how it ended."""
