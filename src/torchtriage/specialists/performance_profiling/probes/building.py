"""What a run writes down about things that are built again and again at one line."""

from __future__ import annotations

import functools
import weakref
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

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
        line = lines.here(type(optimizer).__name__)
        first = next((each for group in optimizer.param_groups for each in group["params"]), None)
        if first is None:
            return
        line.facts["same"] += line.last is not None and line.last() is first
        line.last = weakref.ref(first)
        line.facts["restored"] = restored[1]
        if line.facts["times"] in _TIMES:
            line.facts["module"] = job.module_name(first) if isinstance(first, torch.nn.Parameter) else None
        if not made:
            job.withdraw(fresh)  # one that was never to step may have gone
            job.place(fresh, lambda job: job.listen(stepped))
        made[optimizer] = line
        lines.told(line)

    def stepped(optimizer: Any) -> None:
        line = made.pop(optimizer, None)
        if line is not None:
            line.facts["kept"] += bool(optimizer.state)
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
            line.facts["abandoned"] += 0 < line.facts.pop("batches", 0) < line.facts.pop("length", 0)
            made[loader] = line
            lines.told(line)

    def batch(loader: Any, _batch: Any) -> None:
        line = made.get(loader)
        if line is not None:
            line.facts["batches"] = line.facts.get("batches", 0) + 1
            line.facts["length"] = _length(loader)
        for other in lines.lines.values():
            if other is not line and other.beside != job.step:
                other.beside = job.step
                other.facts["beside"] += 1

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
                line.facts["same"] += line.last is not None and line.last() is target
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
                line.facts["same"] += before == _whereabouts(module)
                line.facts["seconds"] = line.facts.get("seconds", 0.0) + took / 1e9
                lines.told(line)

        return to

    for name in ("to", "cuda"):
        job.wrap(torch.nn.Module, name, make)
    job.listen(lines.ending)


class _Line:
    """One line that builds: how often, in how many steps, since when."""

    def __init__(self, name: str, step: int) -> None:
        self.facts: dict[str, Any] = {"name": name, "times": 0, "steps": 0, "since": step, "module": None}
        self.facts.update(dict.fromkeys(("same", "kept", "abandoned", "beside", "restored"), 0))
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
            line = self.lines[where] = _Line(name, step)
        line.facts["calls"] = calls
        line.facts["times"] += 1
        line.facts["steps"] += step != line.step
        line.step = step
        return line

    def told(self, line: _Line, last: bool = False) -> None:
        if not last and line.facts["times"] not in _TIMES:
            return
        path, number = next(where for where, each in self.lines.items() if each is line)
        over, elapsed = self.job.step - line.facts["since"] + (not last), (now() - line.began) / 1e9
        self.job.record("built", what=self.kind, path=path, line=number, over=over, elapsed=elapsed, **line.facts)

    def ending(self) -> None:
        for line in self.lines.values():
            if line.facts["times"] >= min(_TIMES):
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
