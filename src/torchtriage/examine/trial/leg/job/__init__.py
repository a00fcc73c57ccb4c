"""What every Python process of a leg has in it from its first line on: a guard over what it writes.

Loaded by file path under a private name: standard library only, Python 3.10 or later.
"""

from .guard import Guard, begin, standing

__all__ = ["Guard", "begin", "standing"]
