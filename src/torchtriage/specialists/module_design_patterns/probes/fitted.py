"""What a run writes down about plain tensors of modules that nothing makes again: fitted to data, drawn at random."""

from __future__ import annotations

import ast
import weakref
from typing import TYPE_CHECKING, Any

from .events import NotKept

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from torchtriage.examine.run.job.job import Job

_FIRST, _LAST = 1, 20  # steps after which the attributes are looked at: what is the same then is no state of a pass
_MODULES = 2000  # that are looked through
_STATISTICS = frozenset(
    {
        "mean",
        "std",
        "var",
        "median",
        "quantile",
        "amin",
        "amax",
        "min",
        "max",
        "std_mean",
        "var_mean",
        "cov",
        "svd",
        "eigh",
    }
)
_DRAWS = frozenset(
    {"randn", "rand", "randint", "randperm", "normal", "normal_", "uniform_", "multinomial", "rand_like", "randn_like"}
)
_OWN = ("state_dict", "_save_to_state_dict", "get_extra_state", "_apply", "to")  # a class with one of these takes care
_MOVES = frozenset({"to", "type_as", "cuda", "float", "half", "double", "detach_"})


def fitted(job: Job) -> None:
    """Tensors without gradients, in no register of their module, that its forward reads and no constructor would make
    again: statistics of data that a method was given, numbers drawn at random.
    """
    probe = job.placing
    seen: list[tuple[Any, str, Any, NotKept]] = []

    def iterated(step: int) -> None:
        if step == _FIRST:
            for root in job.roots:
                seen.extend(_of(job, root))
        if step >= _LAST or (step >= _FIRST and not seen):
            for owner, name, tensor, event in seen:
                if owner() is not None and tensor() is not None and vars(owner()).get(name) is tensor():
                    job.record(event)
            job.withdraw(probe)

    job.listen(iterated)


def _of(job: Job, root: Any) -> Iterator[tuple[Any, str, Any, NotKept]]:
    import torch

    kept = [*root.parameters(), *root.buffers()]
    for _, owner in zip(range(_MODULES), root.modules(), strict=False):
        for name, value in vars(owner).items():
            plain = type(value) is torch.Tensor and value.is_floating_point() and not value.requires_grad
            if not plain or any(each in vars(kind) for kind in _users(owner) for each in _OWN):
                continue
            how, path, line = _made(job, owner, name)
            if how and _read(job, owner, name) and not any(each is value for each in kept):
                above = job.module_name(owner)
                module = above if above and above != type(owner).__name__ else ""
                attribute = f"{type(owner).__name__}.{name}"
                event = NotKept(how=how, name=attribute, size=value.numel(), module=module, path=path, line=line)
                yield weakref.ref(owner), name, weakref.ref(value), event


def _users(owner: Any) -> Iterator[type]:
    return (kind for kind in type(owner).__mro__ if not kind.__module__.startswith("torch."))


def _made(job: Job, owner: Any, name: str) -> tuple[str, str, int]:
    """How the methods of the module set the attribute: fitted to data, drawn, or "" for all else; and where."""
    for code in job.written.codes(type(owner)):
        if not job.written.stored(code, name):
            continue
        for value in _values(job, code, name):
            called = {_tail(each.func) for each in ast.walk(value) if isinstance(each, ast.Call)}
            given = set(code.co_varnames[1 : code.co_argcount]) & {
                n.id for n in ast.walk(value) if isinstance(n, ast.Name)
            }
            how = "drawn" if called & _DRAWS and code.co_name == "__init__" else ""
            if code.co_name not in {"__init__", "forward"} and called & _STATISTICS and given:
                how = "fitted"
            if how:
                return how, str(job.path_of(code)), value.lineno
    return "", "", 0


def _values(job: Job, code: CodeType, name: str) -> Iterator[ast.expr]:
    tree = job.written.tree_of(code)
    for each in ast.walk(tree) if tree is not None else ():
        if isinstance(each, ast.Assign) and any(_is_own(target, name) for target in each.targets):
            yield each.value


def _read(job: Job, owner: Any, name: str) -> bool:
    """Whether the module's forward reads the attribute as it is, moving it nowhere and setting it nowhere."""
    code = job.written.code_of(getattr(type(owner), "forward", None))
    if code is None or job.path_of(code) is None or name not in code.co_names or job.written.stored(code, name):
        return False
    tree = job.written.tree_of(code)
    calls = [each.func for each in ast.walk(tree) if isinstance(each, ast.Call)] if tree is not None else []
    moved = [f for f in calls if isinstance(f, ast.Attribute) and f.attr in _MOVES and _is_own(f.value, name)]
    return tree is not None and not moved


def _is_own(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and getattr(node.value, "id", "") == "self"


def _tail(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))
