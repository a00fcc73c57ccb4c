"""What a run writes down about statements of its loop that only name a method, and do nothing."""

from __future__ import annotations

import ast
import dis
from itertools import pairwise
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ._calls import value_of
from .events import BareMethod

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

    from torchtriage.examine.run.job.job import Job

_STEP, _STEPS = 8, 2  # after which the functions that are running are looked through, and that are followed then
_DEEP = 6  # functions, the innermost first
_LOAD, _POP, _CACHE = (dis.opmap.get(name, -1) for name in ("LOAD_ATTR", "POP_TOP", "CACHE"))
_METHODS = (FunctionType, BuiltinFunctionType, MethodType)


def bare_methods(job: Job) -> None:
    """Statements such as `scheduler.step`, in the functions that lead to the optimizer's step, and are reached."""
    watch = _BareMethods(job)
    job.listen(watch.iterated, watch.ending)


class _BareMethods:
    """visits: follows the lines of the functions in which such statements are; of most jobs none does."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.visits: Any = None
        self.named: dict[tuple[str, int], str] = {}

    def iterated(self, step: int) -> None:
        if step == _STEP:
            self.look()
        if step > _STEP + _STEPS or (step >= _STEP and self.visits is None):
            self.ending()
            self.job.withdraw(self.probe)

    def ending(self) -> None:
        visits, self.visits = self.visits, None
        for where in visits.stop() if visits is not None else ():
            self.job.record(BareMethod(method=self.named[where], path=where[0], line=where[1]))

    def look(self) -> None:
        frame, wanted = self.job.frame(), []
        for _ in range(_DEEP):
            if frame is None:
                break
            lines = dict(self.statements(frame))
            self.named |= {(str(self.job.path_of(frame.f_code)), line): name for line, name in lines.items()}
            wanted += [(frame, frozenset(lines))] if lines else []
            frame = self.job.frame(frame.f_back) if frame.f_back is not None else None
        if wanted:
            self.visits = self.job.visits(wanted)

    def statements(self, frame: FrameType) -> Iterator[tuple[int, str]]:
        """The lines of the function of FRAME that are only a method of something that it knows, by name. Few functions
        have any, so that few are parsed.
        """
        if not _drops_attributes(frame.f_code):
            return
        for node in ast.walk(self.job.written.tree_of(frame.f_code) or ast.Pass()):
            named = node.value if isinstance(node, ast.Expr) else None
            if isinstance(named, ast.Attribute):
                owner = value_of(named.value, frame)
                if owner is not None and _is_method(type(owner), named.attr):
                    yield named.lineno, ast.unparse(named)


def _drops_attributes(code: CodeType) -> bool:
    """Whether an attribute is loaded somewhere, and nothing takes it."""
    operations = (each for each in code.co_code[::2] if each != _CACHE)
    return any(one == _LOAD and two == _POP for one, two in pairwise(operations))


def _is_method(kind: type, name: str) -> bool:
    """Whether NAME is a function of the class KIND: no property, and nothing that an object has of its own."""
    return next((isinstance(vars(each)[name], _METHODS) for each in kind.__mro__ if name in vars(each)), False)
