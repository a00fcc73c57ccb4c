"""What is tried: arms of an experiment, each a change of the job, and how far each gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, isfinite, log, sqrt
from statistics import fmean, stdev

from torchtriage.examine.trial.experiment.job.events import Branched

LAST = 4  # the end of a course is its last fourth
LEAST = 0.5  # of the usual gain, as which that of a pair counts at least
MOST = 2.0  # times a gain, as which all is counted that is more
CRITICAL = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36)  # of Student's t, two-sided 95 %, for 1 to 7 degrees of freedom

CHANGES = {
    "learning-rate": "learning rate x {:g}",
    "weight-decay": "no weight decay",
    "clipping": "no clipping",
    "dropout": "no dropout",
    "autocast": "no autocast",
    "one-batch": "one batch only",
    "other-targets": "targets of other samples",
    "batch-from-memory": "batches from memory",
    "workers": "loader workers: {:g}",
    "threads": "threads: {:g}",
    "fused-optimizer": "fused optimizer",
    "channels-last": "channels last",
    "bfloat16": "bfloat16 autocast",
    "compilation": "torch.compile",
    "anomaly-detection": "no anomaly detection",
    "deterministic-kernels": "any kernels, not only deterministic ones",
    "checkpointing": "activation checkpointing",
    "foreach": "one parameter at a time",
    "batch-size": "batch size x {:g}",
}
"""In words, by intervention; {} stands for its value. Those of other rooms are called by their names."""


@dataclass(frozen=True)
class Arm:
    """A change of the job, by the names of interventions, or a REMEDY of its files; the control changes nothing."""

    changes: tuple[tuple[str, float], ...] = ()
    remedy: str = ""

    def __str__(self) -> str:
        if self.remedy:
            return self.remedy
        words = (CHANGES.get(name, f"{name}={{:g}}").format(value) for name, value in self.changes)
        return ", ".join(words) or "unchanged"


CONTROL = Arm()


@dataclass(frozen=True)
class Course:
    """The losses of one branch, a number for each step; of passes that are accumulated their mean.

    before: of steps in which nothing was updated. rates: the learning rate in each step, by the job's own schedule.
    seconds: of each step. peak: bytes in tensors of the device at most; None without one. faults: slugs of those that
    the job shows where it was watched; wastes: those that cost time or memory.
    """

    losses: tuple[float, ...]
    before: tuple[float, ...] = ()
    rates: tuple[float, ...] = ()
    seconds: tuple[float, ...] = ()
    peak: int | None = None
    optimizers: int = 1
    ended: str = "steps"
    why: str = ""
    faults: frozenset[str] = frozenset()
    wastes: frozenset[str] = frozenset()

    @classmethod
    def of(cls, branch: Branched) -> Course:
        losses, before = (tuple(_mean(each) for each in rows if each) for rows in (branch.losses, branch.before))
        return cls(
            losses,
            before,
            tuple(branch.rates),
            tuple(branch.seconds),
            branch.peak,
            branch.optimizers,
            branch.ended,
            branch.why,
        )

    @property
    def is_told(self) -> bool:
        """Whether it has gone far enough to be held against another."""
        return len(self.losses) >= LAST

    @property
    def full(self) -> str:
        """What the allocator asked for when it has ended because the device was full; empty where it was not.

        By torch's own class of error, and the first two of its sentences.
        """
        if self.ended != "error" or not self.why.startswith("OutOfMemoryError: "):
            return ""
        return ". ".join(self.why.removeprefix("OutOfMemoryError: ").split(". ")[:2])

    @property
    def end(self) -> float:
        """The mean of the last fourth; infinite where the loss is not finite any more."""
        found = fmean(self.losses[-(len(self.losses) // LAST) :])
        return found if isfinite(found) else float("inf")

    @property
    def pace(self) -> float:
        """Seconds of a step, in the mean of all but the first fourth: loaders fill their queues there, kernels are
        chosen and models compiled. The mean, since workers give several batches at once and then none.
        """
        late = self.seconds[len(self.seconds) // LAST :]
        return fmean(late) if late else float("nan")


def _mean(losses: Sequence[float]) -> float:
    return fmean(losses)


@dataclass(frozen=True)
class Contrast:
    """How much further one arm gets than another, as a share of a gain; spread: its 95 % interval.

    ends: of the loss, in the mean, of the two. tries: pairs that were compared.
    """

    value: float
    spread: tuple[float, float]
    ends: tuple[float, float]
    tries: int

    @property
    def is_least(self) -> bool:
        """Whether the value is MOST, beyond which nothing is measured."""
        return self.value >= MOST


@dataclass
class Courses:
    """All courses so far, by arm and try: tries of one number begin alike and see the same batches."""

    found: dict[tuple[Arm, int], Course] = field(default_factory=dict)

    def of(self, arm: Arm) -> Mapping[int, Course]:
        return {number: each for (other, number), each in self.found.items() if other == arm and each.is_told}

    @property
    def start(self) -> float:
        """The loss of the weights with which the job begins, in the mean of all batches that were tried with them."""
        told = [each for (arm, _), each in self.found.items() if arm == CONTROL and each.is_told]
        return fmean([loss for each in told for loss in (*each.before, each.losses[0])]) if told else float("nan")

    def gain(self, arm: Arm, number: int = 0) -> float:
        """By how much the loss has fallen at the end of a course; minus infinity where it is not finite."""
        return self.start - self.of(arm)[number].end

    def noise(self, arm: Arm) -> float:
        """The standard deviation of the mean of a course's last fourth, by its own steps, at most."""
        found = [each.losses[-max(2, len(each.losses) // LAST) :] for each in self.of(arm).values()]
        return max((stdev(each) / sqrt(len(each)) for each in found if all(map(isfinite, each))), default=0.0)

    def saved(self, arm: Arm, other: Arm) -> Contrast | None:
        """The share of a step's time that ARM saves beside OTHER, with its 95 % interval; None where no try has both.

        ends: seconds of a step of the two. It is the mean of logarithms: a step that takes half as long, and one that
        takes twice as long, are as far apart. The first try does not count where there are others, as in `contrast`.
        """
        mine, theirs = self.of(arm), self.of(other)
        both = sorted(number for number in mine.keys() & theirs.keys() if mine[number].seconds)
        both = [each for each in both if each] or both
        if not both:
            return None
        ends = fmean(mine[each].pace for each in both), fmean(theirs[each].pace for each in both)
        logs = [log(mine[each].pace / theirs[each].pace) for each in both]
        value = 1 - exp(fmean(logs))
        if len(logs) < 2:
            return Contrast(value, (min(-1.0, value), 1.0), ends, 1)
        half = _half(logs)
        return Contrast(value, (1 - exp(fmean(logs) + half), 1 - exp(fmean(logs) - half)), ends, len(logs))

    def contrast(self, arm: Arm, other: Arm, gain: float | None = None) -> Contrast | None:
        """How much further ARM gets than OTHER; None where no try has both.

        It is a share of what the better one gains in the same pair, or of a GAIN that is known from elsewhere: batches
        differ, and one from which little is gained by the one tells little of the other.

        The first try has chosen which arms are tried again: where there are others it does not count, since the best of
        several is the best by luck, too.
        """
        mine, theirs = self.of(arm), self.of(other)
        both = sorted(mine.keys() & theirs.keys())
        both = [each for each in both if each] or both
        if not both:
            return None
        ends = fmean(mine[each].end for each in both), fmean(theirs[each].end for each in both)
        usual = self.start - min(ends)
        shares = []
        for each in both:
            end, beside = mine[each].end, theirs[each].end
            most = max(self.start - min(end, beside), LEAST * usual, 1e-12) if gain is None else gain
            shares.append(_bounded((beside - end) / most))
        value = fmean(shares)
        if len(shares) < 2:
            return Contrast(value, (-1.0, max(1.0, value)), ends, len(shares))
        half = _half(shares)
        return Contrast(value, (value - half, value + half), ends, len(shares))


def _half(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of VALUES."""
    return CRITICAL[min(len(values) - 1, len(CRITICAL)) - 1] * stdev(values) / sqrt(len(values))


def _bounded(share: float) -> float:
    """An arm that ends far above the start, or in no finite number, has lost all; more is no more certain."""
    return max(-MOST, min(MOST, share))
