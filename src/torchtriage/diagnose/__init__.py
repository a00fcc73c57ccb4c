"""Weighs evidence against the signs of faults and verdicts."""
