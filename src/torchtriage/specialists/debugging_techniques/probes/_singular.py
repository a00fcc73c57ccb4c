"""The line of a loss that has an operation which is not defined, or has no finite slope, everywhere."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from . import _nodes
from ._undefined import name_of, rank_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType
    from typing import TypeGuard

    from torchtriage.examine.run.job.job import Job

_MANY = 200  # operations of the graph that are looked at, the nearest to the loss first
_FRAMES = 3  # of the user's code, from the backward pass outwards
_CODES = 40  # functions that these may call
_FEW = 3  # lines
_EDGED = frozenset({"Sqrt", "Rsqrt", "Log", "Log2", "Log10", "Acos", "Asin", "Reciprocal"})  # one argument, kept or not
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


def lines(job: Job, root: Any) -> list[tuple[str, str, int]]:
    """Name, file and line of such operations of the graph of ROOT, of the kind nearest to the loss, where the user's
    code that may have computed the loss has few that nothing keeps from zero; models are left out, whose passes are
    repeated instead.
    """
    trees = [(str(job.path_of(code)), job.written.tree_of(code)) for code in _reached(job)]
    kinds = _kinds(root.grad_fn)
    calls = {kind: {(path, *call) for path, tree in trees if tree for call in _calls(tree, kind)} for kind in kinds}
    for kind in kinds:
        free = sorted({(path, line) for path, line, kept in calls[kind] if not kept})
        if 0 < len(free) <= _FEW:
            return [(kind.lower(), *place) for place in free]
    every = ((kind, {(path, line) for path, line, _ in calls[kind]}) for kind in kinds)
    return next(([(kind.lower(), *places.pop())] for kind, places in every if len(places) == 1), [])


def _kinds(start: Any) -> list[str]:
    """Those kinds of operations below START, the nearest first."""
    queue, seen, found = [start], {start}, dict[str, None]()
    for node in queue:
        if node is None or len(seen) > _MANY:
            break
        kind = _nodes.kind(node)
        power = getattr(node, "_saved_exponent", 0) if kind == "Pow" else 0
        if (kind in _WORDS or kind == "Div") and not (isinstance(power, (int, float)) and power >= 1):
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


def _calls(tree: ast.AST, kind: str) -> Iterator[tuple[int, bool]]:
    """The lines of TREE that make an operation of KIND, each with whether something keeps it from zero."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name_of(node.func) in _WORDS.get(kind, ()):
            inner = node.args[0] if node.args else getattr(node.func, "value", node)
            yield node.lineno, kind in _EDGED and rank_of(inner, tree) is None
        elif kind == "Div" and _divides(node) and rank_of(node.right, tree) == 1:
            yield node.lineno, False


def _divides(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
