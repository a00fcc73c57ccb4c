"""What a run writes down about parameters that still are what their memory held when they were made."""

from __future__ import annotations

import ast
import math
import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Unfilled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from torchtriage.examine.run.job.job import Job

_EMPTY = frozenset({"empty", "empty_like", "empty_strided", "new_empty", "Tensor", "FloatTensor", "DoubleTensor"})
_NUMBERS = 64  # of each parameter that are compared
_NOTED = 4096  # parameters
_TINY, _HUGE = 1e-37, 1e20  # no initialisation gives numbers outside of these


def filling(job: Job) -> None:
    """Parameters of the user's classes that nobody has filled by the end of the first forward pass."""
    import torch

    watch = _Filling(job)
    job.wrap(torch.nn.Module, "register_parameter", watch.registering)
    job.listen(watch.forwarded)


class _Filling:
    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.made: list[tuple[Any, Any, str, list[int]]] = []  # parameter and module, weak; name; bits

    def registering(self, original: Any) -> Any:
        def register(module: Any, name: str, parameter: Any) -> None:
            original(module, name, parameter)
            if not type(module).__module__.startswith("torch.") and len(self.made) < _NOTED and _plain(parameter):
                self.made.append((weakref.ref(parameter), weakref.ref(module), name, _bits(parameter)))

        return register

    def forwarded(self, _module: Any, _output: Any) -> None:
        for kept, holder, name, bits in self.made:
            parameter, module = kept(), holder()
            if parameter is not None and module is not None and _plain(parameter) and _bits(parameter) == bits:
                self.unfilled(module, name, parameter)
        self.job.withdraw(self.probe)

    def unfilled(self, module: Any, name: str, parameter: Any) -> None:
        path = self.job.module_name(module)
        where = self.made_empty(type(module), name)
        numbers = _sample(parameter).tolist()
        sizes = [abs(each) for each in numbers if math.isfinite(each)]
        strange = any(0 < each < _TINY or each > _HUGE for each in sizes)
        if path is None or not (where or strange):
            return
        shown = f"{path}.{name}" if path != type(module).__name__ else name
        by_hand = any("data" in code.co_names for code in self.job.written.codes(type(module)))
        file, line = where or self.job.written.assigned(type(module), name)
        event = Unfilled(
            class_=type(module).__name__,
            path=file,
            line=line,
            shape=list(parameter.shape),
            module=shown,
            smallest=min(sizes, default=0.0),
            largest=max(sizes, default=0.0),
            finite=len(sizes),
            strange=strange,
            zero=not any(_bits(parameter)),
            by_hand=by_hand,
            of=len(numbers),
        )
        self.job.record(event)

    def made_empty(self, kind: type, name: str) -> tuple[str, int] | None:
        """The line of the class that makes the parameter of memory that is not filled."""
        for code in self.job.written.codes(kind):
            line = _made_empty(self.job, code, name)
            if line:
                return str(self.job.path_of(code)), line
        return None


def _made_empty(job: Job, code: CodeType, name: str) -> int:
    if name not in (*code.co_names, *code.co_consts):
        return 0
    tree = job.written.tree_of(code)
    given = list(_given(tree, name)) if tree is not None else []
    for value in given:
        local = {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}
        values = [value, *(v for each in local for v in _given(tree, each))]
        if any(_is_empty(each) for v in values for each in ast.walk(v)):
            return value.lineno
    return 0


def _given(tree: ast.AST | None, name: str) -> Iterator[ast.expr]:
    """What is assigned to a name, or an attribute, or registered under it."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(each, "attr", getattr(each, "id", None)) == name for each in targets):
                yield node.value
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "register_parameter":
            named, *rest = [*node.args, *(each.value for each in node.keywords)]
            if isinstance(named, ast.Constant) and named.value == name:
                yield from rest[:1]


def _is_empty(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    named = getattr(node.func, "attr", getattr(node.func, "id", ""))
    filled = named.endswith("Tensor") and any(isinstance(each, (ast.List, ast.Name)) for each in node.args[:1])
    return named in _EMPTY and not (filled and len(node.args) == 1)


def _plain(parameter: Any) -> bool:
    """A parameter whose numbers lie at hand, and that nobody has changed in place."""
    import torch

    return (
        type(parameter) is torch.nn.Parameter
        and parameter.device.type == "cpu"
        and parameter.dtype in (torch.float32, torch.float64)
        and parameter.numel() > 0
        and parameter._version == 0
    )


def _sample(parameter: Any) -> Any:
    flat = parameter.detach().reshape(-1)
    return flat[:: max(flat.numel() // _NUMBERS, 1)]


def _bits(parameter: Any) -> list[int]:
    """Numbers as they lie in memory: one that is not a number equals itself."""
    import torch

    kind = torch.int32 if parameter.dtype == torch.float32 else torch.int64
    found: list[int] = _sample(parameter).contiguous().view(kind).tolist()
    return found
