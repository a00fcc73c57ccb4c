"""Operators by theme: each function yields the sites of a program where its fault can be planted."""
