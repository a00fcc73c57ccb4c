"""Probes: what a run writes down, function by function; each runs inside the user's job."""
