"""Where a step spends its time on the device's own timeline: an event at each boundary, read once it is passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..accelerator import accelerator
from ..events import Device, replace
from .collective_waits import CollectiveWaits, Wait
from .waits import Waits

if TYPE_CHECKING:
    from ..job import Job

WAITING = 16  # steps that may be under way on the device at most; beyond, steps are left out
OF_DATA = ("data", "transfer")
COMMUNICATION = "communication"
LEVEL, ALIKE = 50_000.0, 0.02  # nanoseconds, and of the step, by which a device is behind that keeps up
ENDING = {  # which phase of a step has ended when an event of the job comes
    "fetching": "other",
    "batch": "data",
    "forward": "transfer",
    "forwarded": "forward",
    "backward": "other",
    "backwarded": "backward",
    "stepping": "other",
    "stepped": "optimizer",
}


def place(job: Job) -> None:
    """In watched steps, records when the device reaches each boundary; nothing waits for the device.

    The time from the asking for a batch to its arrival is that of waiting for data, as far as the device had run out of
    work; from there to the forward pass, that of the copies; gaps within a phase belong to the phase. What the
    stream that computes waits for a collective is a phase of its own, taken out of the one in which it does.
    """
    job.sampled()
    timeline, waits = Timeline(job), Waits(job)
    collectives = CollectiveWaits(job, timeline, waits)
    is_used = False  # the device, as the end of each step finds it: seven looks a step cost more than all that follows
    latest = ""

    def look(_step: int) -> None:
        nonlocal is_used
        is_used = job.governor.has_device = bool(accelerator.kind)

    def passed(event: str, subject: Any = None) -> None:
        nonlocal latest
        before, latest = latest, event
        if event == before == "fetching":  # a new pass over a loader, and its first batch
            return
        if is_used:
            waits.pass_boundary(event, is_made_here=event == "batch" and getattr(subject, "num_workers", None) == 0)
            collectives.pass_boundary(event)
            timeline.passed(ENDING[event])

    def begin_pass(module: Any, args: Any, kwargs: Any) -> None:
        if is_used and not accelerator.is_followed and (first := next(module.parameters(), None)) is not None:
            accelerator.follow(first.device)
            timeline.restart()  # no event of one device has a time to one of another
        if is_used:
            waits.streams.begin_pass(args, kwargs)

    job.on("forward", begin_pass)
    job.on("forwarded", waits.streams.end_pass)
    for event in ENDING:
        job.on(event, lambda *subjects, event=event: passed(event, *subjects[:1]))
    job.on("aside", waits.start_evaluation)
    job.listen(timeline.iterated)
    job.on("iterated", waits.end_step)
    job.on("iterated", look)
    job.on("iterated", collectives.end_step)
    job.place(f"{job.placing} of wrappers", collectives.note_wrappers)
    job.on("watching", timeline.restart)
    job.on("watching", waits.restart)
    job.on("ending", timeline.settle)
    job.on("ending", waits.streams.settle)


class Boundary(NamedTuple):
    """The end of a PHASE of a step; "" where a wait for a collective interrupts the one that the next boundary names.

    mark: the event of the device. at: nanoseconds on the host's clock, when it was recorded. has_caught_up: whether the
    device had reached the boundary before by then; if not, it has worked all through this phase. wait: that has ended.
    """

    phase: str
    mark: Any
    at: int
    has_caught_up: bool
    wait: Wait | None = None


class Timeline:
    """The boundaries of the current step, and the steps whose last boundary the device has not reached yet.

    stream: in which the last step has ended.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.marks: list[Boundary] = []
        self.start: Boundary | None = None
        self.waiting: list[tuple[Device, Boundary, list[Boundary]]] = []
        self.booked = 0
        self.is_whole = True  # all waits of the step under way are marked
        self.stream: Any = None

    def restart(self) -> None:
        """A window begins: nobody has seen where its first step did."""
        self.start, self.marks = None, []
        self.booked = self.job.governor.booked

    def passed(self, phase: str, wait: Wait | None = None) -> bool:
        """Marks the end of a phase; says whether the device has events to do so."""
        if accelerator.is_capturing():  # CUDA allows no query then
            return False
        last = self.marks[-1] if self.marks else self.start
        has_caught_up, at = last is None or last.mark.query(), accelerator.clock()
        if (mark := accelerator.mark(timed=True)) is not None:
            self.marks.append(Boundary(phase, mark, at, has_caught_up, wait))
        return mark is not None

    def iterated(self, step: int) -> None:
        marks, self.marks = self.marks, []
        booked, self.booked = self.booked, self.job.governor.booked
        is_whole, self.is_whole = self.is_whole, True
        if self.start is not None and marks and is_whole and len(self.waiting) < WAITING:
            overhead = 0.0 if accelerator.has_own_clock else (self.booked - booked) / 1e9
            is_quiet = self.job.governor.is_quiet
            self.waiting.append((Device(at=step, overhead=overhead, is_quiet=is_quiet), self.start, marks))
        self.start = marks[-1] if marks else None
        self.settle()

    def settle(self) -> None:
        """Writes down the steps that the device has ended."""
        while self.waiting and not accelerator.is_capturing() and self.waiting[0][2][-1].mark.query():
            step, start, marks = self.waiting.pop(0)
            self.job.record(replace(step, **vars(_timed(start, marks))))


def _timed(start: Boundary, marks: list[Boundary]) -> Device:
    """The step whose phases end at MARKS, and which begins at START."""
    spent: dict[str, float] = {}
    waits: list[tuple[str | int | float, ...]] = []
    busy = host_paced = 0.0
    is_fetched = any(each.phase == "data" for each in marks)
    for mark, named, times in zip(marks, name_phases(marks), measure_phases(start, marks), strict=True):
        phase = named if is_fetched or named != "transfer" else "other"
        spent[phase] = spent.get(phase, 0.0) + times.seconds
        if mark.wait is not None:
            waits.append((*mark.wait, round(times.seconds, 9), round(times.busy, 9)))
        elif phase not in OF_DATA:
            busy += times.busy
            host_paced += times.seconds * times.is_host_paced
    timed = Device(seconds=sum(spent.values()), busy=busy, host_paced=host_paced)
    return replace(timed, **spent, **({"waits": waits} if waits else {}))


def name_phases(marks: list[Boundary]) -> list[str]:
    """The phases that end at MARKS: one that waits interrupt is the same before and after them."""
    named, under_way = [], "other"
    for mark in reversed(marks):
        if mark.wait is None:
            under_way = mark.phase or under_way
        named.append(COMMUNICATION if mark.wait is not None else under_way)
    return named[::-1]


class PhaseTimes(NamedTuple):
    """What the device did in a phase: seconds of its time, and of those in which it certainly had work.

    is_host_paced: at its begin and at its end the device had done all that it was asked for.
    """

    seconds: float
    busy: float
    is_host_paced: bool


def measure_phases(start: Boundary, marks: list[Boundary]) -> list[PhaseTimes]:
    """What the device did in the phases that end at MARKS, the first of which begins at START.

    By how much the device is behind the host is known but for a constant, since their clocks have no common zero. Where
    it is least behind, it is taken to be level with the host: it is behind by no less, so that all that is called busy
    is.
    """
    boundaries = [start, *marks]
    on_device = [0.0, *(start.mark.elapsed_time(each.mark) * 1e6 for each in marks)]
    on_host = [float(each.at - start.at) for each in boundaries]
    least = min(device - host for device, host in zip(on_device, on_host, strict=True))
    behind = [device - host - least for device, host in zip(on_device, on_host, strict=True)]
    level = LEVEL + ALIKE * on_device[-1]
    is_level = behind[0] <= level
    phases = []
    for at, mark in enumerate(marks, 1):
        took, launching = on_device[at] - on_device[at - 1], on_host[at] - on_host[at - 1]
        idle = min(max(launching - behind[at - 1], 0.0), took) if mark.has_caught_up else 0.0
        is_known = mark.has_caught_up or launching <= level  # in a phase of no length nothing can catch up
        was_level, is_level = is_level, is_known and behind[at] <= level
        phases.append(PhaseTimes(took / 1e9, (took - idle) / 1e9, was_level and is_level))
    return phases
