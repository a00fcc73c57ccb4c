"""The function that is named, found in the user's modules, and how it is called."""

from __future__ import annotations

import importlib
import inspect
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from .refusing import Refused, said


class Subject:
    """What is under trial. function: called with the arguments. kind: "Function", "module" or "callable".

    own: the autograd Function that it is, if it is one. forward: whose signature tells the arguments; skip: how many of
    its parameters are not the user's to give.
    """

    def __init__(self, name: str, found: Any, module: Any) -> None:
        self.name, self.module = name, module
        self.kind, self.function, self.forward, self.skip = "callable", found, found, 0
        self.own: Any = None
        self.inner: list[Any] = []  # the autograd Functions that are found in its graph
        self.layer: Any = None
        self._sort(found)

    def _sort(self, named: Any) -> None:
        import torch

        found: Any = _behind_apply(named)
        if isinstance(found, type) and issubclass(found, torch.autograd.Function):
            self.kind, self.own = "Function", found
            self.function, self.forward = self.own.apply, self.own.forward
            self.skip = 0 if _splits(found) else 1
        elif isinstance(found, torch.nn.Module):
            self.kind, self.layer, self.function, self.forward = "module", found, found, found.forward
        elif hasattr(found, "_init_fn"):  # torch.library.custom_op
            self.forward = found._init_fn

    def parameters(self) -> list[inspect.Parameter] | None:
        """Of forward, as the user gives them; None where that cannot be told."""
        try:
            given = list(inspect.signature(inspect.unwrap(self.forward)).parameters.values())
        except (TypeError, ValueError):
            return None
        return given[self.skip :]

    def place(self, method: str = "") -> tuple[str | None, int | None]:
        """File and line of one of the Function's methods, else of what was named."""
        kind = self.own or (self.inner[0] if len(self.inner) == 1 else None)
        what = getattr(kind, method, None) if kind is not None and method else None
        what = inspect.unwrap(what) if what is not None else (kind or inspect.unwrap(self.forward))
        try:
            return inspect.getsourcefile(what), inspect.getsourcelines(what)[1]
        except (OSError, TypeError):
            return getattr(self.module, "__file__", None), None


def _behind_apply(found: Any) -> Any:
    """The class whose bound `apply` was named."""
    import torch

    owner = getattr(found, "__self__", None)
    is_apply = getattr(found, "__name__", "") == "apply"
    return owner if is_apply and isinstance(owner, type) and issubclass(owner, torch.autograd.Function) else found


def _splits(kind: Any) -> bool:
    """Whether forward is without ctx, which setup_context gets."""
    import torch

    return kind.setup_context is not torch.autograd.Function.setup_context


def subject(named: str) -> Subject:
    """MODULE:NAME or FILE.py:NAME; raises Refused."""
    module, name = loaded(named)
    found = attribute(module, name, named)
    return Subject(name, _made(found, named), module)


def _made(found: Any, named: str) -> Any:
    """A class of modules, or a function without arguments that makes one, is called for what is to be tried."""
    import torch

    if isinstance(found, type) and issubclass(found, torch.nn.Module):
        return _called(found, named)
    if not callable(found):
        raise Refused(f"it is a {type(found).__name__}, which cannot be called", named, "Name a function or class.", 2)
    if isinstance(found, type) and not issubclass(found, torch.autograd.Function):
        raise Refused("it is a class, but no autograd Function and no Module", named, "Name what is called.", 2)
    if inspect.isfunction(found) and not _wanted(found):
        made = _called(found, named)
        is_function = isinstance(made, type) and issubclass(made, torch.autograd.Function)
        return made if is_function or isinstance(made, torch.nn.Module) or _is_function(made) else found
    return found


def _is_function(made: Any) -> bool:
    return inspect.isfunction(made) or inspect.ismethod(made)


def _wanted(function: Any) -> int:
    """How many arguments it has, those with a default too."""
    return len(inspect.signature(function).parameters)


def _called(found: Any, named: str) -> Any:
    import torch

    torch.manual_seed(0)
    try:
        return found()
    except Exception as error:
        do = "Name a function without arguments that returns it, ready to be called."
        raise Refused(f"calling it without arguments raises {said(error)}", named, do) from error


def attribute(module: Any, name: str, named: str) -> Any:
    """What NAME, with dots for what lies within, stands for in MODULE; raises Refused with the nearest names."""
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise Refused(f"there is no {name} in it", named, _nearest(module, name), 2)
        found = getattr(found, part)
    return found


def _nearest(module: Any, name: str) -> str:
    from difflib import get_close_matches

    own = [each for each, value in vars(module).items() if not each.startswith("_") and callable(value)]
    near = get_close_matches(name, own, 3) or sorted(own)[:5]
    return f"Name one of: {', '.join(near)}." if near else "Check the spelling."


def loaded(named: str) -> tuple[Any, str]:
    """The module of MODULE:NAME, imported as a script or test of the user's would, and the name."""
    where, _, name = named.rpartition(":")
    if not where or not name:
        raise Refused(
            "it does not name a function", named, "Write MODULE:FUNCTION, such as ops:Scale or ops.py:Scale.", 2
        )
    try:
        return (_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)), name
    except Refused:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (where == error.name or where.startswith(f"{error.name}.")):
            do = "Start it in the folder from which Python imports it, or write FILE.py:FUNCTION."
            raise Refused(f"there is no module {error.name}", named, do) from error
        raise Refused(_unimportable(error), named, _python(error.name)) from error
    except SystemExit as error:
        do = 'Guard what is to run as a script by `if __name__ == "__main__":`.'
        raise Refused(f"importing it ends the process (exit {error.code})", named, do) from error
    except Exception as error:
        raise Refused(_unimportable(error), named, "Mend that: `python -c 'import MODULE'` has to work.") from error


def _unimportable(error: BaseException) -> str:
    return f"importing it raises {said(error)}"


def _python(missing: str | None) -> str:
    return f"Install {missing} into {sys.executable}, or put the Python that has it first on PATH."


def _file(path: Path) -> Any:
    """A file is imported by the name that its package gives it; one of no package by its own."""
    path = Path(sys.path[0]) / path  # the user's folder: this process works in another
    if not path.is_file():
        raise Refused("there is no such file", str(path), "Check the spelling and the working folder.")
    path = path.resolve()
    top, parts = path.parent, [path.stem]
    while (top / "__init__.py").is_file():
        parts.insert(0, top.name)
        top = top.parent
    name = ".".join(parts[:-1] if path.stem == "__init__" else parts)
    if str(top) not in sys.path:
        sys.path.insert(0, str(top))
    if len(parts) > 1:
        return importlib.import_module(name)
    known = sys.modules.get(name)
    if known is not None:
        if getattr(known, "__file__", None) == str(path):
            return known
        name = f"_{name}_under_trial"
    spec: Any = spec_from_file_location(name, path)
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
