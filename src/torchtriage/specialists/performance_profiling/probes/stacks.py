"""What a run writes down about the lines of the user's code that take the time of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Stacks

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_WARM = 3  # steps at the start that tell nothing
_FIRST = 16  # steps after which the shares are looked at
_FEWEST, _LONG = 4, 500_000_000  # steps that are enough where they take so many nanoseconds together
_SHARE = 0.3  # of the step, for one phase or what no phase explains, from which the lines are asked for
_BLOCK = 16  # steps that are averaged
_SLOWER = 1.5  # times as long as when the lines were last asked for
_TIMES = 5  # that lines are asked for in a run because steps take longer
_LATER, _AGAIN = 8, 4  # times as many steps, after which the same is looked at again; and how often
_COST = 0.01  # of the time of the steps, that all looks may have taken before the next one of those
_SHORTEST = 1_000_000  # nanoseconds of a step below which a line of Python is all there is to see
_FEW = 20  # samples that tell nothing yet
_DEEP = 12  # lines of the loop, the innermost first
_PARTS = ("data", "transfer", "forward", "backward", "optimizer", "communication")


def stacks(job: Job) -> None:
    """The user's lines in which the training thread stands, sampled when a phase or the rest dominates the step or
    several ranks train, whose lines are to be compared, and again whenever steps have become half as long again.
    """
    watch = _Watch(job)
    job.listen(watch.iterated, watch.ending)
    job.undo(job.stacks.end)


class _Watch:
    """Averages of blocks of steps, in nanoseconds."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.steps = self.took = self.whole = self.cost = 0
        self.spent = dict.fromkeys(_PARTS, 0)
        self.base = 0.0
        self.since: int | None = None  # the step in which the lines were asked for
        self.loop: list[tuple[str, int]] = []  # the lines that end a step, and those that call them
        self.around: list[tuple[str, str]] = []  # the functions that these are in
        self.asked = self.again = self.seen = 0
        self.next = 0  # the steps after which the same is looked at again
        self.nodes = 0
        self.passes = _Passes(job)

    def iterated(self, step: int) -> None:
        self.seen += 1
        if self.since is not None and not self.job.stacks.running:
            self.tell()
        if self.seen <= _WARM:
            return
        parts = self.job.clock.parts
        self.steps += 1
        self.took += self.job.clock.took - parts["probes"]
        for part in _PARTS:
            self.spent[part] += parts[part]
        if self.steps >= (_BLOCK if self.base else _FIRST) or (self.steps == _FEWEST and self.took > _LONG):
            self.judge(step)

    def judge(self, step: int) -> None:
        """At the end of a block: is there reason to ask for the lines?"""
        mean = self.took / self.steps
        self.whole += self.took
        self.next = self.next or self.seen
        if mean > _SHORTEST and self.since is None and self.wanted(mean) and self.job.stacks.start(mean / 1e9):
            self.base, self.since = mean, step
            self.loop, self.around = self.job.callers(_DEEP), _functions(self.job)
            self.nodes = _nodes()
            self.passes.listen()
        self.base = self.base or mean
        self.steps = self.took = 0
        self.spent = dict.fromkeys(_PARTS, 0)

    def wanted(self, mean: float) -> bool:
        """Whether something dominates in the first block, or much later; or steps take longer than they did."""
        if self.base and self.asked < _TIMES and mean > _SLOWER * self.base:
            self.asked += 1
            return True
        if self.again > _AGAIN or self.seen < self.next or self.cost > _COST * self.whole:
            return False
        largest = max(*self.spent.values(), self.took - sum(self.spent.values()))
        self.again, self.next = self.again + 1, _LATER * self.seen
        return largest > _SHARE * self.took or _several()

    def tell(self) -> None:
        self.passes.rest()
        seen = self.job.stacks.summary(Stacks)
        self.cost += self.job.stacks.cost
        self.job.governor.book(self.probe, self.job.stacks.cost)
        seen.since, seen.loop, seen.around = self.since or 0, self.loop, self.around
        seen.nodes = (_nodes() - self.nodes) / max(self.job.step - seen.since, 1)
        seen.again, seen.evaluated = self.passes.again, self.passes.of
        if seen.samples >= _FEW:
            self.job.record(seen)
        self.since = None

    def ending(self) -> None:
        self.job.stacks.end()
        if self.since is not None:
            self.tell()


class _Passes:
    """While the lines are looked at: whether models that learn are evaluated on the same batch in each step."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, f"{job.placing} within"
        self.restart()

    def restart(self) -> None:
        self.learning: set[int] = set()
        self.now: tuple[Any, ...] | None = None  # the marks of the first batch that was evaluated in this step
        self.before: tuple[Any, ...] | None = None
        self.of = self.again = (
            0  # steps with an evaluation, and those in which that was of the batch of the step before
        )

    def listen(self) -> None:
        self.restart()
        self.job.place(self.probe, lambda job: job.listen(self.forward, self.aside, self.iterated))

    def rest(self) -> None:
        self.job.withdraw(self.probe)

    def forward(self, module: Any, _args: Any, _kwargs: Any) -> None:
        if self.job.learning:
            self.learning.add(id(module))

    def aside(self, module: Any, args: Any, kwargs: Any) -> None:
        if self.now is None and not self.job.learning and id(module) in self.learning:
            self.now = tuple(self.job.marks([*args, *kwargs.values()]))

    def iterated(self, _step: int) -> None:
        self.of += bool(self.now)
        self.again += bool(self.now) and self.now == self.before
        self.before, self.now = self.now, None


def _functions(job: Job) -> list[tuple[str, str]]:
    """File and name of the user's functions that are running, the innermost first."""
    found: list[tuple[str, str]] = []
    frame = job.frame()
    while frame is not None and len(found) < _DEEP:
        found.append((str(job.path_of(frame.f_code)), frame.f_code.co_qualname))
        frame = job.frame(frame.f_back) if frame.f_back is not None else None
    return found


def _nodes() -> int:
    """How many nodes of autograd this thread has made so far; 0 where torch does not tell."""
    import torch

    count: Any = getattr(torch.autograd, "_get_sequence_nr", int)
    return int(count())


def _several() -> bool:
    from torch import distributed

    return bool(distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1)
