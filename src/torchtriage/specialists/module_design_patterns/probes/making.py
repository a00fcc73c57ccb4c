"""What a run writes down about layers with weights that forward passes construct."""

from __future__ import annotations

import sys
import weakref
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Made

if TYPE_CHECKING:
    from types import FrameType

    from torchtriage.examine.run.job.job import Job

_PASSES = 64  # in which layers were made, after which enough is known
_TOLD = 10
_INNER = "module_design_patterns/making within"
_CALLS = ("roots.py", "_run")  # the frame that runs a root module


def making(job: Job) -> None:
    """Layers that are constructed within a forward pass, learn nothing, and are gone after it."""
    import torch

    watch = _Making(job)
    job.listen(watch.ending)
    job.wrap(torch.nn.Module, "register_parameter", watch.registering)


class _Line:
    """A line of a forward pass that constructs layers."""

    def __init__(self, kind: str, module: str | None, passes: int) -> None:
        self.kind, self.module = kind, module
        self.since, self.passes, self.last = passes, 0, -1
        self.made = self.kept = self.touched = self.size = 0


class _Making:
    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.listens = False
        self.passes = 0
        self.lines: dict[tuple[str, int], _Line] = {}
        self.made: list[tuple[Any, Any, _Line]] = []  # parameter and its layer, both weak
        self.finished: dict[int, list[Any]] = {}  # by parameter: what it was when its layer's constructor had ended
        self.kinds: set[type] = set()

    def registering(self, original: Any) -> Any:
        def register(module: Any, name: str, parameter: Any) -> None:
            original(module, name, parameter)
            if self.job.learning and parameter is not None:
                self.registered(module, parameter)

        return register

    def registered(self, module: Any, parameter: Any) -> None:
        where = _constructed(sys._getframe(1))
        if where is None:  # no constructor: the weights of a layer are exchanged by hand
            for _, layer, made in self.made:
                made.touched += layer() is module
            return
        outer, frame = where
        user = self.job.frame(frame)
        if user is None:
            return
        if not self.listens:
            self.listens = True
            self.job.place(self.probe, lambda job: job.listen(self.forwarded))
        key = (str(self.job.path_of(user.f_code)), user.f_lineno)
        line = self.lines.get(key)
        if line is None:
            owner = self.job.module_name(user.f_locals.get("self"))
            line = self.lines[key] = _Line(type(outer).__name__, owner, self.passes)
        self.made.append((weakref.ref(parameter), weakref.ref(module), line))
        if type(outer) not in self.kinds and len(self.kinds) < 8:
            self.kinds.add(type(outer))
            self.job.place(_INNER, lambda job: job.wrap(type(outer), "__init__", self.constructing))

    def constructing(self, original: Any) -> Any:
        """Notes the weights as the constructor leaves them, so that weights set by hand are told apart."""

        def construct(module: Any, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            if self.job.learning:
                self.finished.update({id(each): _state(each) for each in module.parameters()})

        return construct

    def forwarded(self, _module: Any, _output: Any) -> None:
        self.passes += 1
        for kept, _, line in self.made:
            parameter = kept()
            line.made += 1
            if parameter is not None and parameter.requires_grad:  # the graph holds it: it took part
                line.kept += 1
                line.size += parameter.numel()
                state = self.finished.get(id(parameter))
                line.touched += state is not None and state != _state(parameter)
            if line.last != self.passes:
                line.last = self.passes
                line.passes += 1
        told = any(line.passes == _TOLD and line.last == self.passes for line in self.lines.values())
        self.made.clear()
        self.finished.clear()
        if told:
            self.tell()
        if any(line.passes >= _PASSES for line in self.lines.values()):
            self.ending()

    def ending(self) -> None:
        self.tell()
        self.job.withdraw(_INNER)
        self.job.withdraw(self.probe)

    def tell(self) -> None:
        for (path, number), line in self.lines.items():
            event = Made(
                path=path,
                line=number,
                layer=line.kind,
                passes=line.passes,
                of=self.passes - line.since,
                made=line.made,
                kept=line.kept,
                touched=line.touched,
                size=line.size // max(line.passes, 1),
                module=line.module,
            )
            self.job.record(event)


def _constructed(frame: FrameType | None) -> tuple[Any, FrameType | None] | None:
    """The outermost module that is being constructed within this call of a root, and the frame that constructs it."""
    import torch

    found = None
    while frame is not None:
        code = frame.f_code
        if code.co_name == _CALLS[1] and PurePath(code.co_filename).name == _CALLS[0]:
            return found
        if code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), torch.nn.Module):
            found = (frame.f_locals["self"], frame.f_back)
        frame = frame.f_back
    return None


def _state(parameter: Any) -> list[Any]:
    """What changes when somebody sets a parameter: its version, its memory, its first numbers on a CPU."""
    first = parameter.detach().reshape(-1)[:4].tolist() if parameter.device.type == "cpu" else []
    return [parameter._version, parameter.data_ptr(), *first]
