"""Measures whether the skill helps an agent: with it, without it, under pressure."""

__version__ = "0.1.0"
