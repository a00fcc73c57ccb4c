"""What a run writes down about the lines that take the time which no phase explains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_WARM = 3  # steps at the start that tell nothing
_FIRST = 16  # steps after which the shares are looked at
_SHARE = 0.3  # of the step, for data or what no phase explains, from which the lines are asked for
_BLOCK = 16  # steps that are averaged
_SLOWER = 1.5  # times as long as when the lines were last asked for
_TIMES = 5  # that lines are asked for in a run
_SHORTEST = 1_000_000  # nanoseconds of a step below which a line of Python is all there is to see
_FEW = 20  # samples that tell nothing yet
_DEEP = 12  # lines of the loop, the innermost first


def stacks(job: Job) -> None:
    """The user's lines in which the training thread stands, sampled once when data or the rest dominates the step or
    several ranks train, whose lines are to be compared, and again whenever steps have become half as long again.
    """
    watch = _Watch(job)
    job.listen(watch.iterated, watch.ending)
    job.undo(job.stacks.end)


class _Watch:
    """Averages of blocks of steps, in nanoseconds."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.steps = self.took = self.data = self.known = 0
        self.base = 0.0
        self.since: int | None = None  # the step in which the lines were asked for
        self.loop: list[tuple[str, int]] = []  # the lines that end a step, and those that call them
        self.asked = self.seen = 0

    def iterated(self, step: int) -> None:
        self.seen += 1
        if self.since is not None and not self.job.stacks.running:
            self.tell()
        if self.seen <= _WARM:
            return
        parts = self.job.clock.parts
        self.steps += 1
        self.took += self.job.clock.took - parts["probes"]
        self.data += parts["data"]
        self.known += parts["transfer"] + parts["forward"] + parts["backward"] + parts["optimizer"]
        self.known += parts["communication"]
        if self.steps == (_BLOCK if self.base else _FIRST):
            self.judge(step)

    def judge(self, step: int) -> None:
        """At the end of a block: is there reason to ask for the lines?"""
        mean = self.took / self.steps
        largest = max(self.data, self.took - self.data - self.known)
        first = largest > _SHARE * self.took or _several()
        wanted = first if not self.base else mean > _SLOWER * self.base
        self.base = self.base or mean
        if wanted and mean > _SHORTEST and self.asked < _TIMES and self.job.stacks.start(mean / 1e9):
            self.base, self.since, self.asked = mean, step, self.asked + 1
            self.loop = self.job.callers(_DEEP)
        self.steps = self.took = self.data = self.known = 0

    def tell(self) -> None:
        facts: dict[str, Any] = self.job.stacks.facts()
        self.job.governor.book(self.probe, self.job.stacks.cost)
        if facts["samples"] >= _FEW:
            self.job.record("stacks", since=self.since, loop=self.loop, **facts)
        self.since = None

    def ending(self) -> None:
        self.job.stacks.end()
        if self.since is not None:
            self.tell()


def _several() -> bool:
    from torch import distributed

    return bool(distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1)
