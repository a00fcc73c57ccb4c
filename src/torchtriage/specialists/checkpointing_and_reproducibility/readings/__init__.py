"""Readings: what the lines of a record say; arithmetic only."""
