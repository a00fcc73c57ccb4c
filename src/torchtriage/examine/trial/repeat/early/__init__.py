"""What stands in every Python process of a repetition from its first line on: who asks for time and entropy, and, in a
leg that tries an explanation, the same answers every time.

Loaded by file path under a private name: standard library only, Python 3.10 or later.
"""

from .asking import begin

__all__ = ["begin"]
