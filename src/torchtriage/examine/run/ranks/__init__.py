"""The records of several ranks, joined: where they met, differ, stood still, died, and how each compares."""
