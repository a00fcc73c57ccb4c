"""What a run writes down about clocks that the job reads while the device works."""

from __future__ import annotations

import sys
import time
from _thread import get_ident
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .events import ClockReadings

if TYPE_CHECKING:
    from types import CodeType, ModuleType

    from torchtriage.examine.run.job.job import Job

_CLOCKS = ("time", "time_ns", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")
_FIRST, _LAST = 16, 80  # watched steps, of which half are quiet: what probes compute would be timed, too
_MOST = 64  # readings between two steps; a loop that reads more often is no timing of a step


class _Reading(NamedTuple):
    """code, line: of the user's. at: nanoseconds of the host. mark: reached when the device has come so far."""

    code: CodeType
    line: int
    at: int
    mark: Any


class _Totals:
    """times: that a line was read after another. host, device: seconds in between."""

    def __init__(self) -> None:
        self.times = 0
        self.host = self.device = 0.0


def clocks(job: Job) -> None:
    """How long the user's lines take by their own clock, and how long by the device's; in some of the first steps."""
    job.sampled()
    watch = _Clocks(job)
    job.listen(watch.watching, watch.iterated, watch.ending)


class _Clocks:
    """readings: since the last step. pending: pairs of neighbours, the second of which the device has not reached."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, f"{job.placing} of readings"
        self.steps = self.waits = self.recent = 0  # recent: waits since the last step
        self.readings: list[_Reading] = []
        self.pending: list[tuple[_Reading, _Reading]] = []
        self.totals: dict[tuple[str, int, int], _Totals] = {}

    def place(self, job: Job) -> None:
        """Takes the place of the clocks in their module, and under the names that the user's modules have given them;
        and of the call by which a job that measures waits for the device.
        """
        job.sampled()
        originals = {id(getattr(time, name)) for name in _CLOCKS}
        for module in (time, *self._modules()):
            for name, value in list(vars(module).items()):
                if id(value) in originals:
                    job.wrap(module, name, self._reading)
        for owner in job.accelerator.modules:
            if hasattr(owner, "synchronize"):
                job.wrap(owner, "synchronize", self._waiting)

    def _modules(self) -> list[ModuleType]:
        """Those of the user's. A lazy one stays as it is; that of a notebook has no file."""
        known = [(module, getattr(module, "__dict__", {}).get("__file__")) for module in list(sys.modules.values())]
        own = [module for module, file in known if isinstance(file, str) and self.job.path_of(file) is not None]
        main = sys.modules["__main__"]
        return own if main in own or hasattr(main, "__file__") else [*own, main]

    def _reading(self, original: Any) -> Any:
        def read(*args: Any, **kwargs: Any) -> Any:
            value = original(*args, **kwargs)
            self.note()
            return value

        return read

    def _waiting(self, original: Any) -> Any:
        def synchronize(*args: Any, **kwargs: Any) -> Any:
            self.recent += 1
            return original(*args, **kwargs)

        return synchronize

    def note(self) -> None:
        """A clock has been read."""
        job, accelerator = self.job, self.job.accelerator
        is_wanted = job.governor.is_quiet and len(self.readings) < _MOST and get_ident() == job.watched.thread
        frame = job.frame() if is_wanted else None
        if frame is not None and (mark := accelerator.mark(timed=True)) is not None:
            self.readings.append(_Reading(frame.f_code, frame.f_lineno, accelerator.clock(), mark))

    def watching(self) -> None:
        """A window begins: nobody has seen what was read before it."""
        self.readings.clear()

    def iterated(self, _step: int) -> None:
        self.steps += 1
        if self.steps == _FIRST and self.job.accelerator.kind:
            self.job.place(self.probe, self.place)
        if not _FIRST < self.steps <= _LAST:
            return
        pairs = list(pairwise(self.readings))
        self.pending += [(one, other) for one, other in pairs if one.code is other.code]
        self.waits, self.recent = self.waits + (self.recent if pairs else 0), 0
        self.readings = self.readings[-1:] if self.job.governor.is_quiet else []
        self._measure()
        if self.steps == _LAST:
            self.job.withdraw(self.probe)
            self.ending()

    def _measure(self) -> None:
        """Adds the pairs that the device has passed."""
        while self.pending and not self.job.accelerator.is_capturing() and self.pending[0][1].mark.query():
            first, second = self.pending.pop(0)
            path = self.job.path_of(second.code) or ""
            totals = self.totals.setdefault((path, first.line, second.line), _Totals())
            totals.times += 1
            totals.host += (second.at - first.at) / 1e9
            totals.device += first.mark.elapsed_time(second.mark) / 1e3

    def ending(self) -> None:
        """Writes down what there is, once."""
        if self.totals:
            spans = [(*lines, each.times, each.host, each.device) for lines, each in self.totals.items()]
            self.job.record(ClockReadings(spans=spans, waits=self.waits))
            self.totals = {}
