"""A case for a program: the JSON of the interface."""

from __future__ import annotations

from torchtriage.core.case import Case
from torchtriage.core.plain import written


def render(case: Case) -> str:
    """CASE in the shape of the interface, indented."""
    return written(case.as_dict())
