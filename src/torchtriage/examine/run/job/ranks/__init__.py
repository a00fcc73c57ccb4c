"""The process among those that train together: its number, its collectives, and where it stands when nothing moves."""
