"""What a run writes down about when its ranks meet: when each began its collectives, and when backward was over."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from math import prod
from time import perf_counter_ns, time_ns
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Collectives

from ._functions import wrap

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job
    from torchtriage.examine.run.job.ranks.flight import Entry

_LOOKS = frozenset({64, 512, 4096, 32_768, 262_144, 2_097_152})  # steps, the same on all ranks
_STEPS = 256  # the last ones, that a look tells about
_RECORDED = 2000  # collectives that torch keeps by default
_BYTES = {"Double": 8, "Long": 8, "ComplexDouble": 16, "ComplexFloat": 8, "Half": 2, "BFloat16": 2, "Short": 2}
_SMALL = ("Byte", "Char", "Bool", "Float8")
_KINDS = 4  # of collectives, the most frequent of a look


def arrivals(job: Job) -> None:
    """In jobs of several ranks: when each step's first and last collectives began, when its backward and itself ended,
    and as a phase of its own the time in which the thread that trains waited for a collective.

    Looked at after step 64, 512, 4096 … and at the end: torch records the collectives anyway, and each look reads the
    last steps.
    """
    import torch

    if not torch.distributed.is_available():
        return
    watch = _Arrivals(job, torch.distributed)
    job.listen(watch.iterated, watch.ending)
    job.wrap(torch.distributed.distributed_c10d.Work, "wait", watch.waiting)
    wrap(job, "destroy_process_group", watch.destroying)


class _Arrivals:
    """ends: of the last steps that were watched: number, nanoseconds at which the last backward began and ended, the
    last wait ended, and the step did. begins: nanoseconds at which each of them began.
    """

    def __init__(self, job: Job, distributed: Any) -> None:
        self.job, self.probe, self.distributed = job, job.placing, distributed
        self.ends: deque[tuple[int, int, int, int, int]] = deque(maxlen=_STEPS)
        self.begins: deque[int] = deque(maxlen=_STEPS)
        self.told = -1  # the last step that a look has told about
        self.waited = 0  # when the last wait for a collective ended
        self.queued: tuple[int, int] | None = None  # at a step: nanoseconds that the other threads had waited for a CPU

    def waiting(self, original: Any) -> Any:
        clock = self.job.clock

        def wait(*args: Any, **kwargs: Any) -> Any:
            entered = clock.enter()
            try:
                return original(*args, **kwargs)
            finally:
                clock.leave(entered, "communication")
                self.waited = perf_counter_ns()

        return wait

    def iterated(self, step: int) -> None:
        if not self.ends and not self.several():
            self.job.withdraw(self.probe)
            return
        clock = self.job.clock
        if self.ends and step <= self.ends[-1][0]:  # a better boundary of steps: they are numbered anew
            self.ends.clear()
            self.begins.clear()
            self.told = -1
        self.ends.append((step, *clock.propagated, self.waited, clock.began))
        self.begins.append(clock.began - clock.took)
        self.queued = self.queued or (step, self.job.waited_beside())
        if step in _LOOKS:
            self.look()

    def several(self) -> bool:
        return bool(self.distributed.is_initialized() and self.distributed.get_world_size() > 1)

    def destroying(self, original: Any) -> Any:
        def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
            self.ending()
            return original(*args, **kwargs)

        return destroy_process_group

    def ending(self) -> None:
        if self.ends and self.ends[-1][0] != self.told:
            self.look()

    def look(self) -> None:
        """Boils the collectives since the last look down to a row for each step and group; times in microseconds."""
        told, self.told = self.told, self.ends[-1][0]
        epoch, found = time_ns() - perf_counter_ns(), self.job.collectives(_RECORDED)
        ends, begins = list(self.ends), list(self.begins)
        until = [end[-1] for end in ends]
        look = _Look()
        for entry in found:
            created = entry["created"] - epoch
            at = bisect_left(until, created)
            look.pairs += entry["p2p"]
            if at < len(until) and begins[at] < created and ends[at][0] > told:  # else of one that rested, or goes on
                look.add(entry, ends[at], epoch)
        base = ends[0][-1] + epoch
        new = [[step, *(_since(base, each + epoch) for each in moments)] for step, *moments in ends if step > told]
        self.job.record(
            Collectives(
                base=base,
                ends=new,
                queued=self.held(),
                groups=list(look.groups.items()),
                rows=look.rows(base),
                pairs=look.pairs,
                kinds=[(op, size, count) for (op, size), count in look.kinds.most_common(_KINDS)],
            )
        )

    def held(self) -> float:
        """Seconds of a step that the other threads of the process waited for a CPU, since the last look."""
        since, before = self.queued or (self.told, 0)
        self.queued = (self.told, self.job.waited_beside())
        steps = self.told - since
        return round(max(self.queued[1] - before, 0) / steps / 1e9, 6) if steps > 0 and before else 0.0


class _Look:
    """pairs: sends and receives."""

    def __init__(self) -> None:
        self.parts: dict[tuple[int, str], _Part] = {}
        self.kinds: Counter[tuple[str, int]] = Counter()
        self.groups: dict[str, list[int]] = {}
        self.pairs = 0

    def add(self, entry: Entry, end: tuple[int, ...], epoch: int) -> None:
        if not entry["p2p"]:
            self.groups[entry["group"]] = entry["ranks"]
            step, began, propagated = end[:3]
            self.parts.setdefault((step, entry["group"]), _Part()).add(entry, began + epoch, propagated + epoch)
            self.kinds[entry["op"], _bytes(entry)] += 1

    def rows(self, base: int) -> list[tuple[int, int, int, int, int, int, int | None, int, int]]:
        names = list(self.groups)
        return [(step, names.index(name), *part.row(base)) for (step, name), part in self.parts.items()]


class _Part:
    """Of one step and group: the first and the last collective, the last within its last backward, and how many."""

    def __init__(self) -> None:
        self.first = self.last = (0, 0)  # number in the group, nanoseconds since 1970
        self.inner: int | None = None
        self.count = self.bytes = 0

    def add(self, entry: Entry, began: int, propagated: int) -> None:
        self.last = (entry["seq"], entry["created"])
        self.first = self.first if self.count else self.last
        if began < entry["created"] < propagated:
            self.inner = entry["created"]
        self.count, self.bytes = self.count + 1, self.bytes + _bytes(entry)

    def row(self, base: int) -> tuple[int, int, int, int, int | None, int, int]:
        first, last = ((seq, _since(base, created)) for seq, created in (self.first, self.last))
        inner = None if self.inner is None else _since(base, self.inner)
        return (*first, *last, inner, self.count, self.bytes)


def _since(base: int, nanoseconds: int) -> int:
    return (nanoseconds - base) // 1000


def _bytes(entry: Entry) -> int:
    """Of what goes in: gloo's barrier has nothing."""
    pairs = zip(entry["sizes"], entry["dtypes"], strict=False)
    return sum(prod(size) * (1 if kind.startswith(_SMALL) else _BYTES.get(kind, 4)) for size, kind in pairs)
