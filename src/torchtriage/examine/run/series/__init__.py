"""Figures of many steps, with their intervals."""
