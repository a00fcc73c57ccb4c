"""Calls that are written in the functions which are running, whether they are reached or not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from torchtriage.examine.run.job.job import Job

_FRAMES = 3  # of the user's code, the innermost first, that are looked through
_MOST = 3  # calls that are told


def calls_in_sight(job: Job, name: str, of: Any = None) -> list[tuple[str, int]]:
    """File and line of the calls of a method NAME in the user's innermost functions, and in the other methods of their
    objects; where OF is given, of those only that are called on it or are handed it.
    """
    found: dict[tuple[str, int], None] = {}
    frame, frames = job.frame(), _FRAMES if of is not None else 2
    while frame is not None and frames and len(found) < _MOST:
        for code in _codes(job, frame, own=of is None):
            for line, given in _calls(job.written.tree_of(code), name):
                if of is None or any(value_of(each, frame) is of for each in given):
                    found[str(job.path_of(code)), line] = None
        frame, frames = job.frame(frame.f_back) if frame.f_back is not None else None, frames - 1
    return list(found)[:_MOST]


def _codes(job: Job, frame: FrameType, *, own: bool) -> Iterator[CodeType]:
    """The code of FRAME, and unless it is the OWN one only, of the other methods of its object."""
    yield frame.f_code
    if not own and "self" in frame.f_locals:
        yield from (code for code in job.written.codes(type(frame.f_locals["self"])) if code is not frame.f_code)


def _calls(tree: ast.AST | None, name: str) -> Iterator[tuple[int, list[ast.expr]]]:
    """The line of every call of a method, with what it is called on and what it is given; a statement that names the
    method and forgets to call it counts too.
    """
    for node in ast.walk(tree) if tree is not None else ():
        said = node.value if isinstance(node, ast.Expr) else None
        named = node.func if isinstance(node, ast.Call) else said
        if isinstance(named, ast.Attribute) and named.attr == name:
            yield named.lineno, [named.value, *(node.args if isinstance(node, ast.Call) else ())]


def value_of(node: ast.AST, frame: FrameType) -> Any:
    """What a name or an attribute stands for in FRAME, with no property asked; None for all else."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        return getattr(value_of(node.value, frame), "__dict__", {}).get(node.attr)
    return None
