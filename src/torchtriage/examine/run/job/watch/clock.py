"""The clock of steps: where one ends, and what comes with its end."""

from __future__ import annotations

import math
import os
import weakref
from time import perf_counter_ns as now
from time import time_ns
from typing import TYPE_CHECKING, Any

from .. import events
from ..accelerator import accelerator
from ..record.writer import AT_ONCE, inode, kept, opened
from .cpu import Work
from .phases import COUNTS, NO_COUNTS, NO_TIME, PHASES, Phases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .rest import Rest
    from .session import Session

DENSE = 20_000  # steps that are all recorded; later ever fewer, so that the record of a week stays small
FALLBACK = 8  # so many backward (or else forward) passes with no optimizer step before they count as steps
DESERTED = 16  # so many repeated turns of others before the optimizer that used to end the step is given up
# By hand, from whole nanoseconds: a JSON encoder takes five times as long.
ROW = '{"kind":"step","step":%d,"start":%de-9,"seconds":%de-9,"cpu":%de-9,"queued":%de-9,'
ROW += "".join(f'"{phase}":%de-9,' for phase in PHASES) + "".join(f'"{count}":%d,' for count in COUNTS)
RESIDENT = 50_000_000  # nanoseconds for which a reading of the resident memory holds, after the first AT_ONCE steps
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Clock(Phases):
    """Tiles the wall clock into steps, and each step into phases; nested phases count once, in the inner one.

    A step ends when the optimizer that steps last within an iteration has had its turn, taken or skipped. Which one
    that is, the first iteration shows: two optimizers that alternate make one step. While no optimizer ever steps, a
    backward pass ends a step; while there is none either, a call of a root module does. When a better boundary
    appears, a line "clock" says so and the steps are numbered from 0 again.
    """

    def __init__(self, job: Session, rest: Rest, end_job: Callable[[str], None]) -> None:
        self.job, self.rest, self.end_job = job, rest, end_job
        super().__init__()

    def restart(self) -> None:
        """As if nothing had been seen yet; in a forked child too, whose memory is its own."""
        super().restart()
        self.resident, self.close = _resident()
        self._read, self._known_memory = 0, ""
        self.loss: tuple[int, float] | None = None  # (step it belongs to, value)
        self.latest: float | None = None  # of all losses
        self.scale: float | None = None
        self.before = self.counts  # those of the step that has just ended
        self._rested = dict.fromkeys(COUNTS, 0)  # the last one that did not, in which these are still part of `counts`
        self.took = 0  # nanoseconds of the step that has just ended
        self.follows_rest = False  # nobody has watched the step before
        self.propagated: tuple[int, int] = (0, 0)  # when the last backward pass began and ended
        self.update: tuple[int, int] | None = None  # the start of the one under way, anew after a closure's backward
        self._passes = {"forward": 0, "backward": 0}
        self._turns: set[int] = set()
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers that have had a turn
        self._closer: weakref.ref[Any] | None = None
        self._last: weakref.ref[Any] | None = None  # in the first iteration: who stepped last so far
        self._deserted = 0
        self.fetched = False  # a batch was asked for in this step
        self.settled = False  # nothing is to be done before something other than an optimizer begins
        self.began = now()  # of the step
        self._work = Work()
        self.cpu = 0  # nanoseconds of the thread that ends the steps
        self._epoch = time_ns() - self.began

    def fetching(self) -> None:
        """A batch is about to be asked for."""
        if not self.settled:
            self.settle(matters=False)
        self.fetched = True

    def lost(self, step: int, loss: float) -> None:
        """The loss of STEP, which on a device becomes known in a later step."""
        self.loss, self.latest = (step, loss), loss

    def scaled(self, scale: float) -> None:
        """The loss scale after an update."""
        self.scale = scale

    def passed(self, kind: str) -> None:
        """A backward pass, or a call of a root module, has ended: the step's end where nothing better is known."""
        if kind == "forward" and self._passes["backward"]:
            return
        self._passes[kind] += 1
        if self._passes[kind] >= FALLBACK and not self.known:
            self._upgrade(kind)
            self._close()

    def turned(self, optimizer: Any) -> None:
        """An optimizer has had its turn: it has stepped, or a scaler has skipped it."""
        self.turns, self.row = self.turns + 1, 0
        closer = self._closer() if self._closer is not None else None
        if optimizer is closer:
            self._close()
            return
        self._upgrade("optimizer")
        me, known = id(optimizer), optimizer in self.known
        self.known.add(optimizer)
        if closer is None and self._closer is None:
            if me in self._turns:
                self.settle()
            self._last, self.settled = weakref.ref(optimizer), False
            self._turns.add(me)
            return
        newly_last = not known and (_follows(optimizer, closer) or (not self.fetched and not self._turns))
        self._deserted += me in self._turns
        self._turns.add(me)
        if closer is None or newly_last or self._deserted >= DESERTED:
            self._closer = weakref.ref(optimizer)
            self._close()

    def settle(self, matters: bool = True) -> None:
        """Something other than an optimizer begins: whoever stepped last in the first iteration ends its steps."""
        if matters and not self.job.writer.opened:
            self.job.matters()
        if self._last is not None:
            self._closer, self._last = self._last, None
            self._close()
        self.settled = self.job.writer.opened

    def end(self) -> None:
        """The job is ending: what has come to an end is recorded."""
        self.settle(matters=False)
        if self.boundary is None and any(self._passes.values()):
            self.boundary = "backward" if self._passes["backward"] else "forward"
            self._close()

    def _upgrade(self, boundary: str) -> None:
        if self.boundary == boundary:
            return
        if self.boundary is not None:
            self.job.step = 0
            self.job.record(events.Clock(boundary=boundary))
            self.job.governor.anew()
            self.job.listeners.choose()
        self.boundary = boundary

    def _close(self) -> None:
        if self.rest.on:
            self._pass_over()
            return
        ended, job = now(), self.job
        self.cpu = self._work.of(ended)
        job.late.settle()
        number = job.step - self.rest.total  # of those that are watched
        if number < DENSE or kept(number, DENSE):
            job.writer.put(self._row(ended, is_dense=number < DENSE), ended)
        else:
            self.rest.forget()
        claimed = self._claimed
        self.parts, self.took = self._spent, ended - self.began
        self._spent = NO_TIME.copy()
        self.before, self.counts = self.counts, NO_COUNTS.copy()
        for what, number in self.before.items():
            self._ended[what] += number
        self.loss = None
        self._turns.clear()
        self._deserted, self.fetched = 0, False
        began, self.began = self.began, ended
        job.fire("iterated", job.step)
        job.step += 1
        renewed = job.governor.ended(ended - began)
        if job.governor.reaches(job.step) or renewed:
            job.listeners.choose()
        if job.governor.opened:
            job.fire("watching")
        elif job.governor.has_resumed:
            job.resume()
        if job.steps is not None and job.step >= job.steps and self.boundary != "forward":
            self.end_job("steps")
        self.follows_rest = False
        if job.listeners.only:
            job.listeners.only = ""
            job.listeners.choose()
        if self.rest.follows(ended - began):
            self.rest.turn(True)
            job.writer.flush()  # until somebody watches again, minutes may pass
        self._spent["probes"] = now() - ended
        self._claimed = claimed + self._spent["probes"]

    def _pass_over(self) -> None:
        """The end of a step that rested. As many lines as it must have: it runs in nearly all steps of a long job."""
        job, ended = self.job, now()
        took, self.began = ended - self.began, ended
        self._work.steps += 1
        self._turns.clear()
        self._deserted, self.fetched = 0, False
        job.step += 1
        self._rested = self.counts.copy()
        goes_on = self.rest.count(took)
        if job.steps is not None and job.step >= job.steps:
            self.end_rest()
            self.end_job("steps")
        elif not goes_on:
            job.governor.reaches(job.step, is_due=True)
            self.end_rest()

    def end_rest(self) -> None:
        """The next step is watched, or the one under way is after all: its counts and times are its own."""
        rested, self._rested = self._rested, NO_COUNTS.copy()
        for what, number in rested.items():
            self._ended[what] += number
            self.counts[what] -= number
        self._spent = NO_TIME.copy()
        self.follows_rest = True
        self.rest.end(rested["epochs"])

    def rouse(self) -> None:
        """The step under way is watched after all, by the guard's own probe: others have not seen how it began."""
        guard, batch = self.rest.guard, self.rest.batch
        if guard is not None:
            self.job.listeners.only = guard.probe
        self.end_rest()
        if guard is not None and batch is not None:
            self.rest.show(guard, batch)

    def _row(self, ended: int, *, is_dense: bool) -> str:
        """The step's line in JSON."""
        began = self.began
        times = (ended - began, self.cpu, self._work.queued, *(self._spent[phase] for phase in PHASES))
        text = ROW % (self.job.step, self._epoch + began, *times, *self.counts.values())
        if self.loss is None:
            text += '"loss":null'
        else:
            text += f'"loss":{_spelt(self.loss[1])}'
            if self.loss[0] != self.job.step:
                text += f',"loss_step":{self.loss[0]}'
        text += self.rest.members(is_dense=is_dense)
        if self._spent["communication"]:
            text += f',"communication":{self._spent["communication"]}e-9'
        if self.scale is not None:
            text += f',"scale":{_spelt(self.scale)}'
        if self.job.listeners.only:
            text += ',"is_at_rest":true'
        if self.boundary != "optimizer":
            text += f',"boundary":"{self.boundary}"'
        return f"{text},{self._memory(ended)}}}"

    def _memory(self, ended: int) -> str:
        """Resident and allocated bytes, as members of a JSON object."""
        if self.job.step < AT_ONCE or ended - self._read > RESIDENT:
            self._read = ended
            known = {"rss": self.resident(), **_allocated()}
            self._known_memory = ",".join(f'"{name}":{"null" if v is None else v}' for name, v in known.items())
        return self._known_memory


def _follows(optimizer: Any, closer: Any) -> bool:
    """Whether a new OPTIMIZER has the parameters of the CLOSER, which need not be gone yet."""
    return closer is not None and any(_first(optimizer) is each for each in _all(closer))


def _first(optimizer: Any) -> Any:
    return next(_all(optimizer), optimizer)


def _all(optimizer: Any) -> Iterator[Any]:
    return (each for group in getattr(optimizer, "param_groups", ()) for each in group["params"])


def _spelt(value: float) -> str:
    """A number as JSON readers of Python take it, nan and the infinities included."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
    return repr(value)


def _resident() -> tuple[Callable[[], int | None], Callable[[], None]]:
    """What reads this process's resident memory in bytes, None where the system does not tell; and what ends that."""
    try:
        file = opened("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return lambda: None, lambda: None
    named = inode(file)

    def read() -> int | None:
        """None once the job has closed the descriptor, whatever its number names by then."""
        try:
            return int(os.pread(file, 64, 0).split()[1]) * PAGE if inode(file) == named else None
        except OSError:
            return None

    def close() -> None:
        if read() is not None:
            os.close(file)

    return read, close


def _allocated() -> dict[str, int | None]:
    """Bytes in tensors, their peak, and bytes held by the caching allocator of the current device."""
    return {"allocated": None, **(accelerator.memory() if accelerator.kind else {})}
