"""The user's lines that built parameters, optimizers and schedules, that filled parameters, and that squash signals."""

from __future__ import annotations

import ast
import dis
import sys
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from torchtriage.examine.run.job.job import Job

    Line = tuple[str, int]
    Told = tuple[str, str, int]  # what stands there, file, line

_SQUASHING = frozenset({"sigmoid", "tanh", "softsign", "hardsigmoid", "hardtanh", "logsigmoid"})
_OURS = str(Path(__file__).parents[3])
_TAME = frozenset({"requires_grad_", "detach_", "retain_grad_"})
_HANDS = 2  # lines
_SEVERAL = 3  # of such modules: one alone, as at the end, lets little vanish


class Births:
    """Notes where the functions of torch.nn.init, optimizers and schedules are called, which happens seldom."""

    def __init__(self, job: Job) -> None:
        import torch

        self.job = job
        self.built: dict[int, tuple[weakref.ref[Any], Line]] = {}
        self.filled: dict[int, tuple[weakref.ref[Any], Line]] = {}
        self.schedules: weakref.WeakKeyDictionary[Any, Line] = weakref.WeakKeyDictionary()  # by optimizer
        for name, function in list(vars(torch.nn.init).items()):
            if name.endswith("_") and not name.startswith("_") and callable(function):
                job.wrap(torch.nn.init, name, self.filling)
        job.wrap(torch.optim.lr_scheduler.LRScheduler, "__init__", self.scheduling)

    def filling(self, original: Any) -> Any:
        """A parameter's first filling is that of the module that makes it; one that the user's own code asks for is
        its filling.
        """

        def filled(*args: Any, **kwargs: Any) -> Any:
            tensor = args[0] if args else kwargs.get("tensor")
            if hasattr(tensor, "requires_grad"):
                where = self.job.caller()
                _note(self.built, tensor, where, again=False)
                if self.job.path_of(_beyond_ours(sys._getframe(1)).f_code) is not None:
                    _note(self.filled, tensor, where, again=True)
            return original(*args, **kwargs)

        return filled

    def scheduling(self, original: Any) -> Any:
        def scheduled(schedule: Any, optimizer: Any, *args: Any, **kwargs: Any) -> None:
            if optimizer not in self.schedules:
                self.schedules[optimizer] = self.job.caller()
            original(schedule, optimizer, *args, **kwargs)

        return scheduled

    def of_optimizer(self, optimizer: Any) -> list[Told]:
        """Where it was built, and the schedule of its learning rate."""
        name, schedule = type(optimizer).__name__, self.schedules.get(optimizer, ("", 0))
        found = [(f"the schedule of {name} is built here", *schedule)]
        found.append((f"{name}, which has its learning rate, is built here", *self.job.built.at(optimizer)))
        return [each for each in found if each[2]]

    def of_parameter(self, parameter: Any, name: str) -> list[Told]:
        """Where a parameter NAME was filled, and where it and what holds it were built."""
        made = (self.job.written.made(root, name.removeprefix(f"{type(root).__name__}.")) for root in self.job.roots)
        held = next((where for where in made if where[1]), ("", 0))
        found = [
            (f"{name} is filled here", *_noted(self.filled, parameter)),
            (f"{name} is built here", *held),
            (f"{name} is made here", *_noted(self.built, parameter)),
            *((f"{name} may be changed here", *where) for where in self.by_hand(name)[:_HANDS]),
        ]
        return [each for each in found if each[2]]

    def by_hand(self, name: str) -> list[Line]:
        """The lines of the file in which the model stands that change such a parameter in place, outside of what
        trains: of a module of that name, or of one that a variable stands for.
        """
        above, _, kind = name.rpartition(".")
        codes = (
            code for root in self.job.roots for part in root.modules() for code in self.job.written.codes(type(part))
        )
        frame = self.job.frame()
        code = next(codes, frame.f_code if frame is not None else None)
        if code is None:
            return []
        found = []
        for node in ast.walk(self.job.written.file_of(code) or ast.Pass()):
            if not isinstance(node, (ast.Call, ast.AugAssign)):
                continue
            chain = _chain(node.func if isinstance(node, ast.Call) else node.target)
            in_place = isinstance(node, ast.AugAssign) or (chain and chain[-1].endswith("_") and chain[-1] not in _TAME)
            at = chain.index(kind) if kind in chain[1:] and in_place else 0
            if at == 1 or (at > 1 and chain[at - 1] == above.rpartition(".")[2]):
                found.append((str(self.job.path_of(code)), node.lineno))
        return found

    def squashing(self, root: Any) -> list[Told]:
        """The first line that gives a network functions whose slope is below 1 everywhere but at 0."""
        kinds = [type(part).__name__ for part in root.modules()]
        squashing = {kind for kind in kinds if kind.lower() in _SQUASHING and kinds.count(kind) >= _SEVERAL}
        frame = self.job.frame()
        codes = [code for part in root.modules() for code in self.job.written.codes(type(part))]
        if squashing and (codes or frame is not None):
            code = codes[0] if codes or frame is None else frame.f_code
            tree, path = self.job.written.file_of(code), self.job.path_of(code)
            lines = [line for each in ast.walk(tree or ast.Pass()) if (line := _naming(each, squashing))]
            says = f"{', '.join(sorted(squashing))}, of a slope below 1, is used here"
            return [(says, path, min(lines))] if lines and path else []
        for code in codes:
            line = _called(code, self.job.written)
            if line:
                return [("a function of a slope below 1 is used here", str(self.job.path_of(code)), line)]
        return []


def _chain(node: ast.AST | None) -> list[str]:
    """The names of an expression such as a.b.c, in that order; empty for another one."""
    names: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        names += [node.attr] if isinstance(node, ast.Attribute) else []
        node = node.value
    return [*reversed([*names, node.id])] if isinstance(node, ast.Name) else []


def _note(notes: dict[int, tuple[weakref.ref[Any], Line]], thing: Any, where: Line, *, again: bool) -> None:
    known = notes.get(id(thing))
    if where[1] and (again or known is None or known[0]() is not thing):
        notes[id(thing)] = (weakref.ref(thing), where)


def _noted(notes: dict[int, tuple[weakref.ref[Any], Line]], thing: Any) -> Line:
    kept = notes.get(id(thing))
    return kept[1] if kept is not None and kept[0]() is thing else ("", 0)


def _beyond_ours(frame: FrameType) -> FrameType:
    """Who called the function that several of our wrappers may lie around."""
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


def _naming(node: ast.AST, names: set[str]) -> int:
    """The line of an expression that is one of NAMES; 0 for all else."""
    if isinstance(node, (ast.Attribute, ast.Name)):
        return node.lineno if (node.attr if isinstance(node, ast.Attribute) else node.id) in names else 0
    return 0


def _called(code: CodeType, written: Any) -> int:
    """The first line of CODE that names such a function; 0 when none does."""
    if _SQUASHING.isdisjoint(code.co_names):
        return 0
    named = (each for each in dis.get_instructions(code) if each.opname.startswith("LOAD_"))
    return next((written.line_at(code, each.offset) for each in named if each.argval in _SQUASHING), 0)
