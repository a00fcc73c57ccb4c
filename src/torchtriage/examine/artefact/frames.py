"""Stacks as torch writes them into its artefacts: frames of {filename, line, name}, the innermost first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

_LIBRARIES = ("/site-packages/", "/dist-packages/", "/lib/python3", "\\site-packages\\", "\\lib\\python")
_NATIVE = (".cpp", ".c", ".cc", ".cu", ".h", ".hpp", ".so", ".S", ".inc")


class Frame(NamedTuple):
    """One line that was running. line: 0 where it is not known."""

    path: str
    line: int
    function: str


def is_own(frame: Frame) -> bool:
    """Whether FRAME is Python code that no package manager installed: the job's own."""
    path = frame.path
    return not (path[:1] in {"", "<", "?"} or path.endswith(_NATIVE) or any(each in path for each in _LIBRARIES))


def own(frames: Iterable[Frame]) -> Frame | None:
    """The innermost of FRAMES that is the job's own."""
    return next((each for each in frames if is_own(each)), None)


def is_python(frame: Frame) -> bool:
    """Whether FRAME is of Python; stacks="all" mixes them with those of C++."""
    return frame.path.endswith((".py", ">")) and frame.line > 0


def said(frames: Sequence[Frame]) -> str:
    """The job's own innermost line, else the innermost of Python, else of any: "train.py:77 (step)"."""
    found = own(frames) or next(filter(is_python, frames), None) or next(iter(frames), None)
    if found is None:
        return "a place without a stack"
    return f"{found.path}:{found.line} ({found.function})" if found.line else found.function
