"""What a call of a functional dropout is told of the mode: nothing, a default, a flag that is not the module's."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

    from torchtriage.examine.run.job.job import Job

_FLAGS = frozenset({"training", "is_training", "train", "train_mode", "is_train", "training_mode"})
_NAMED = ("dropout", "attention")


def tells_no_mode(job: Job, frame: FrameType, stated: str, position: int) -> bool:
    """Whether the dropout that FRAME calls is not told the mode, under the name STATED or at that POSITION: it is left
    out, or is a parameter of the function around it with True as its default, which the caller leaves out, or is a flag
    other than that of a module.
    """
    call = job.written.call_in(frame)
    if call is None:
        return False
    part = _part(frame, call.func)
    if stated in part.keywords or not any(each in name for each in _NAMED for name in (_name(call.func), part.name)):
        return False
    position -= part.given
    said = next((each.value for each in call.keywords if each.arg == stated), None)
    if said is None and len(call.args) > position:
        said = call.args[position]
    if said is None:
        return all(each.arg is not None for each in call.keywords)
    if isinstance(said, ast.Name):
        return _by_default(job, frame, said.id)
    return isinstance(said, ast.Attribute) and said.attr in _FLAGS and not _of_a_module(frame, said)


class _Part:
    """What a name in a call stands for: the function's own NAME, and what a partial of it has been GIVEN already."""

    def __init__(self, value: Any) -> None:
        self.given, self.keywords = 0, set[str]()
        while isinstance(value, functools.partial):
            self.given += len(value.args)
            self.keywords |= set(value.keywords)
            value = value.func
        of_torch = str(getattr(value, "__module__", "")).startswith("torch.nn.")
        self.name = str(getattr(value, "__name__", "")) if of_torch else ""


def _part(frame: FrameType, function: ast.expr) -> _Part:
    """What FUNCTION names in FRAME, found without running code."""
    names: list[str] = []
    while isinstance(function, ast.Attribute):
        names.insert(0, function.attr)
        function = function.value
    first = function.id if isinstance(function, ast.Name) else ""
    value = frame.f_locals.get(first, frame.f_globals.get(first))
    for name in names:
        found = (vars(each) for each in (value, type(value)) if hasattr(each, "__dict__"))
        value = next((own[name] for own in found if name in own), None)
    return _Part(value)


def _by_default(job: Job, frame: FrameType, name: str) -> bool:
    """Whether NAME is a parameter of the function that FRAME runs, is True by default, and the user's call leaves it
    out.
    """
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if name not in names or _default(job.written.tree_of(code), name) is not True:
        return False
    caller = frame.f_back
    if caller is None or job.path_of(caller.f_code) is None:
        return False
    call = job.written.call_in(caller)
    if call is None or any(each.arg in (None, name) for each in call.keywords):
        return False
    bound = isinstance(call.func, ast.Attribute) and names[:1] == ("self",)
    return len(call.args) + bound <= names.index(name) and not any(isinstance(a, ast.Starred) for a in call.args)


def _default(tree: ast.AST | None, name: str) -> Any:
    body: list[Any] = getattr(tree, "body", [])
    function = next(iter(body), None)
    if not isinstance(function, ast.FunctionDef):
        return None
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    late = plain[len(plain) - len(given.defaults) :]
    by_name: dict[str, ast.expr | None] = {arg.arg: value for arg, value in zip(late, given.defaults, strict=True)}
    by_name |= {arg.arg: value for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)}
    return getattr(by_name.get(name), "value", None)


def _of_a_module(frame: FrameType, flag: ast.Attribute) -> bool:
    """Whether FLAG is the mode of a module, or of something that cannot be told without running code."""
    import torch

    names: list[str] = []
    at: ast.expr = flag.value
    while isinstance(at, ast.Attribute):
        names.append(at.attr)
        at = at.value
    owner = frame.f_locals.get(at.id) if isinstance(at, ast.Name) else None
    for name in reversed(names):
        own = getattr(owner, "__dict__", {})
        owner = own.get(name, own.get("_modules", {}).get(name))
    if owner is None:
        return True
    if isinstance(owner, torch.nn.Module):
        return flag.attr == "training" or flag.attr not in vars(owner)
    return getattr(owner, "__dict__", {}).get(flag.attr) is not True


def _name(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))
