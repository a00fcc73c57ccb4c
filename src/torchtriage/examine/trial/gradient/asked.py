"""What a trial of a gradient is asked."""

from __future__ import annotations

from dataclasses import dataclass

EXPECTATIONS = ("straight-through", "reversed", "scaled", "clipped")
"""Gradients that are not the derivative on purpose, as far as a word says what they are; else a reference does."""


@dataclass(frozen=True)
class Asked:
    """target: MODULE:FUNCTION or FILE.py:FUNCTION. inputs, reference: likewise. shapes: as --shapes takes them.

    expect: one of EXPECTATIONS. timeout: seconds that one check may take.
    """

    target: str
    inputs: str | None = None
    shapes: str | None = None
    reference: str | None = None
    expect: str | None = None
    timeout: float = 120.0
