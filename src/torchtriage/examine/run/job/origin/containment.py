"""Whether a forward pass can be repeated in a healthy job: its code reaches nothing that outlives the call."""

from __future__ import annotations

import dis
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, ModuleType, BuiltinFunctionType)
_EFFECTS = frozenset({"next", "open", "input", "exec", "eval", "print", "globals", "setattr", "send", "Generator"})
_STORES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF"})


def is_contained(module: Any) -> bool:
    """Whether the methods of MODULE and its parts, constructors aside, use modules, functions and constants only.

    What hangs on a module itself is not looked at: a replay puts that back.
    """
    seen: set[Any] = set()
    kinds = {kind for part in module.modules() for kind in type(part).__mro__}
    own = [each for kind in kinds if not _of_a_library(kind.__module__) for each in vars(kind).values()]
    methods = [each for each in own if isinstance(each, FunctionType) and each.__name__ != "__init__"]
    return all(_harmless(each, seen) for each in methods)


def _harmless(function: FunctionType, seen: set[Any]) -> bool:
    if function.__code__ in seen or _of_a_library(function.__module__):
        return True
    seen.add(function.__code__)
    codes = [function.__code__]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    if any(
        _EFFECTS & set(code.co_names) or any(i.opname in _STORES for i in dis.get_instructions(code)) for code in codes
    ):
        return False
    names = {name for code in codes for name in code.co_names}
    used = [function.__globals__[name] for name in names if name in function.__globals__]
    used += [cell.cell_contents for cell in function.__closure__ or ()]
    return all(_constant(each, seen) for each in used)


def _constant(value: Any, seen: set[Any]) -> bool:
    import torch

    if isinstance(value, FunctionType):
        return _harmless(value, seen)
    if isinstance(value, tuple):
        return all(_constant(each, seen) for each in value)
    return isinstance(value, (*_PLAIN, torch.dtype, torch.device, torch.Size))


def _of_a_library(name: str | None) -> bool:
    return (name or "").split(".")[0] in {"torch", "builtins", "typing", "abc", "math", "functools"}
