"""The line of a loss that has an operation which is not defined, or has no finite slope, everywhere."""

from __future__ import annotations

import dis
from typing import TYPE_CHECKING, Any

from . import _nodes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from torchtriage.examine.run.job.job import Job

_MANY = 200  # operations of the graph that are looked at, the nearest to the loss first
_FRAMES = 3  # of the user's code, from the backward pass outwards
_CODES = 40  # functions that these may call
_WORDS = {
    "Sqrt": {"sqrt", "std"},
    "Rsqrt": {"rsqrt"},
    "Log": {"log"},
    "Log2": {"log2"},
    "Log10": {"log10"},
    "Log1P": {"log1p"},
    "Acos": {"acos", "arccos"},
    "Asin": {"asin", "arcsin"},
    "Std": {"std"},
    "Norm": {"norm"},
    "LinalgVectorNorm": {"norm", "vector_norm"},
    "Cdist": {"cdist"},
    "Exp": {"exp"},
    "Reciprocal": {"reciprocal"},
    "Pow": {"pow"},
}  # what makes such an operation


def line(job: Job, root: Any) -> tuple[str, str, int] | None:
    """Name, file and line of such an operation of the graph of ROOT, where the user's code that may have computed the
    loss has one only; models are left out, whose passes are repeated instead.
    """
    codes = list(_reached(job))
    for kind in _kinds(root.grad_fn):
        places = {place for code in codes for place in _named(job, code, _WORDS[kind])}
        if len(places) == 1:
            path, number = places.pop()
            return kind.lower(), path, number
    return None


def _kinds(start: Any) -> list[str]:
    """Those kinds of operations below START, the nearest first."""
    queue, seen, found = [start], {start}, dict[str, None]()
    for node in queue:
        if node is None or len(seen) > _MANY:
            break
        kind = _nodes.kind(node)
        if kind in _WORDS:
            found[kind] = None
        below = {each for each, _ in node.next_functions if each is not None} - seen
        seen |= below
        queue += below
    return list(found)


def _reached(job: Job) -> Iterator[CodeType]:
    """The code of the innermost functions that are running, and of what they name, and what that names."""
    models = {type(part) for root in job.roots for part in root.modules()}
    queue: list[tuple[CodeType, dict[str, Any]]] = []
    frame: FrameType | None = job.frame()
    for _ in range(_FRAMES):
        if frame is not None:
            queue.append((frame.f_code, {**frame.f_globals, **frame.f_locals}))
            frame = job.frame(frame.f_back) if frame.f_back is not None else None
    seen = set[Any]()
    for code, names in queue:
        if code in seen or len(seen) > _CODES:
            continue
        seen.add(code)
        yield code
        for name in (*code.co_names, *code.co_varnames):
            queue += _behind(job, names.get(name), models)


def _behind(job: Job, value: Any, models: set[type]) -> Iterator[tuple[CodeType, dict[str, Any]]]:
    """The code of a function of the user's, or of the methods of an object that is no part of a model."""
    written, kind = job.written, value if isinstance(value, type) else type(value)
    code = written.code_of(value)
    if code is not None and job.path_of(code) is not None:
        yield code, getattr(value, "__globals__", {})
    elif kind not in models and kind.__module__ not in ("builtins", "torch"):
        for method in vars(kind).values():
            code = written.code_of(method)
            if code is not None and job.path_of(code) is not None:
                yield code, getattr(method, "__globals__", {})


def _named(job: Job, code: CodeType, words: set[str]) -> Iterator[tuple[str, int]]:
    if not words.isdisjoint(code.co_names):
        for each in dis.get_instructions(code):
            if each.argval in words and each.opname.startswith("LOAD_"):
                yield str(job.path_of(code)), job.written.line_at(code, each.offset)
