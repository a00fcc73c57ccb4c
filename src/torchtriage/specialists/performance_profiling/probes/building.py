"""What a run writes down about things that are built again and again at one line."""

from __future__ import annotations

import functools
import weakref
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import Built

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_CALLERS = 4  # lines: the one that builds, and those that call it
_TIMES = frozenset({10, 100, 1000, 10_000, 100_000})  # when a line is written down again


def optimizers(job: Job) -> None:
    """Lines that build an optimizer over the same parameters as the last one from there, which had kept a state."""
    import torch

    lines, fresh = _Lines(job, "optimizer"), f"{job.placing} within"
    made: weakref.WeakKeyDictionary[Any, _Line] = weakref.WeakKeyDictionary()
    restored: dict[int, int] = {0: -1, 1: 0}  # the last step in which weights were loaded, and how many there were

    def built(optimizer: Any) -> None:
        first = next((each for group in optimizer.param_groups for each in group["params"]), None)
        if first is None or job.rest.on:  # whether it keeps a state is not told in steps that rest
            return
        line = lines.here(type(optimizer).__name__)
        line.event.same += line.last is not None and line.last() is first
        line.last = weakref.ref(first)
        line.event.restored = restored[1]
        if line.event.times in _TIMES:
            line.event.module = job.module_name(first) if isinstance(first, torch.nn.Parameter) else None
        if not made:
            job.withdraw(fresh)  # one that was never to step may have gone
            job.place(fresh, lambda job: job.listen(stepped))
        made[optimizer] = line
        lines.told(line)

    def stepped(optimizer: Any) -> None:
        line = made.pop(optimizer, None)
        if line is not None:
            line.event.kept += bool(optimizer.state)
        if not made:
            job.withdraw(fresh)

    def load(original: Any) -> Any:
        def load_state_dict(*args: Any, **kwargs: Any) -> Any:
            restored[1] += restored[0] != job.step
            restored[0] = job.step
            return original(*args, **kwargs)

        return load_state_dict

    job.wrap(torch.nn.Module, "load_state_dict", load)
    job.listen(built, lines.ending)


def workers(job: Job) -> None:
    """Lines that build a DataLoader with workers, which it starts anew: beside another loader, or for some batches."""
    from torch.utils.data import DataLoader

    lines, probe = _Lines(job, "loader"), job.placing
    made: weakref.WeakKeyDictionary[Any, _Line] = weakref.WeakKeyDictionary()

    def built(loader: Any, *_: Any, **__: Any) -> None:
        if loader.num_workers:
            if not lines.lines:
                job.place(probe, lambda job: job.listen(batch))
            line = lines.here(type(loader.dataset).__name__)
            if line.event.batches:
                line.event.abandoned += line.event.batches < line.event.length
                del line.event.batches, line.event.length  # the new one has delivered nothing
            made[loader] = line
            lines.told(line)

    def batch(loader: Any, _batch: Any) -> None:
        line = made.get(loader)
        if line is not None:
            line.event.batches += 1
            line.event.length = _length(loader)
        for other in lines.lines.values():
            if other is not line and other.beside != job.step:
                other.beside = job.step
                other.event.beside += 1

    job.wrap(DataLoader, "__init__", _after(built))
    job.listen(lines.ending)


def compiled(job: Job) -> None:
    """Lines that compile the same module or function again."""
    import torch

    lines = _Lines(job, "compiled")

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: A001 - its name in torch
            given = original(model, *args, **kwargs)
            if model is not None:
                line = lines.here(getattr(model, "__name__", type(model).__name__))
                target = getattr(model, "__code__", model)
                line.event.same += line.last is not None and line.last() is target
                line.last = weakref.ref(target)
                lines.told(line)
            return given

        return compile

    job.wrap(torch, "compile", make)
    job.listen(lines.ending)


def moves(job: Job) -> None:
    """Lines that take a module to where it is already, and the time that this takes."""
    import torch

    lines = _Lines(job, "moved")

    def make(original: Any) -> Any:
        @functools.wraps(original)
        def to(module: Any, *args: Any, **kwargs: Any) -> Any:
            before, began = _whereabouts(module), now()
            try:
                return original(module, *args, **kwargs)
            finally:
                took = now() - began
                line = lines.here(type(module).__name__)
                line.event.same += before == _whereabouts(module)
                line.event.seconds += took / 1e9
                lines.told(line)

        return to

    for name in ("to", "cuda"):
        job.wrap(torch.nn.Module, name, make)
    job.listen(lines.ending)


class _Line:
    """One line that builds, and what has been counted of it."""

    def __init__(self, event: Built) -> None:
        self.event = event
        self.began = now()
        self.step = self.beside = -1
        self.last: Any = None


class _Lines:
    """All lines that build things of one KIND."""

    def __init__(self, job: Job, kind: str) -> None:
        self.job, self.kind = job, kind
        self.lines: dict[tuple[str, int], _Line] = {}

    def here(self, name: str) -> _Line:
        """The user's line that is running, which builds once more; a new one when the steps are numbered anew."""
        (where, *calls), step = self.job.callers(_CALLERS) or [("", 0)], self.job.step
        line = self.lines.get(where)
        if line is None or step < line.step:
            line = self.lines[where] = _Line(self.nothing(name, where))
        line.event.calls = calls
        line.event.times += 1
        line.event.steps += step != line.step
        line.step = step
        return line

    def nothing(self, name: str, where: tuple[str, int]) -> Built:
        """What is known of a line before it has built anything."""
        return Built(
            what=self.kind, name=name, path=where[0], line=where[1], since=self.job.step, module=None, times=0,
            steps=0, over=0, elapsed=0.0, same=0, kept=0, abandoned=0, beside=0, restored=0,
        )  # fmt: skip

    def told(self, line: _Line, last: bool = False) -> None:
        if not last and line.event.times not in _TIMES:
            return
        over, elapsed = self.job.step - line.event.since + (not last), (now() - line.began) / 1e9
        self.job.record(replace(line.event, over=over, elapsed=elapsed))

    def ending(self) -> None:
        for line in self.lines.values():
            if line.event.times >= min(_TIMES):
                self.told(line, last=True)


def _after(built: Any) -> Any:
    """A constructor, after which BUILT is told what it was given."""

    def make(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(self, *args, **kwargs)
            built(self, *args, **kwargs)

        return __init__

    return make


def _whereabouts(module: Any) -> tuple[str, str]:
    first = next(module.parameters(), None)
    return ("", "") if first is None else (str(first.device), str(first.dtype))


def _length(loader: Any) -> int:
    try:
        return len(loader)
    except TypeError:  # an iterable dataset has no length
        return 1 << 60
