"""What a record says about losses that end above what nobody needs to learn, and about the learning rate behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import median
from typing import NamedTuple

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import (
    Classes,
    ClippedByHook,
    ClipScaled,
    EditedByHand,
    Guess,
    NonFinite,
    Rate,
    Targets,
)
from torchtriage.examine.run.measures.training import sole_loss
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.examine.run.series.quantiles import quantile
from torchtriage.specialists.debugging_techniques.probes.events import (
    Ascent,
    Broadcast,
    Probabilities,
    Rectified,
    UpdateSize,
    Zeroed,
)
from torchtriage.specialists.debugging_techniques.readings.schedules import is_beyond

ENOUGH = 100  # losses: before, a loss that leapt up at first may still come down
LATE = 4  # the last one in so many is the end of a run
WORSE: dict[type[Guess], float] = {Classes: 1.5, Targets: 4.0}
"""Times the start and a constant guess: squares grow twice as fast."""
LEAP = 1.25  # times the start and a constant guess, to which the loss rose early on
AT_GUESS, NEAR_GUESS = (
    0.98,
    0.9,
)  # of a constant guess: whose median, and three in four losses, end above has learned nothing
LARGE = 0.1  # of the weights, in one update; healthy ones are a thousandth to a hundredth, 0.03 in a first step of Adam
HALF = 0.5  # of the weights, in one update: what they were is gone, whether or not the loss leaps
RISEN = 2.0  # times the first loss, where nobody knows what a guess costs
FIRST = 10  # steps in which updates are that large, where the rate is to blame
ASCENTS, GROWN = 20, 1.2  # passes that are seen, and times by which the loss has grown
GAME = 3  # changes of the optimizer that steps: two that train against each other take turns, be it by epochs
SPELT = {
    "NllLoss": "the cross entropy",
    "NllLoss2D": "the cross entropy",
    "MseLoss": "the mean squared error",
    "SmoothL1Loss": "the smooth L1 loss",
    "HuberLoss": "the Huber loss",
    "BinaryCrossEntropy": "the binary cross entropy",
    "BinaryCrossEntropyWithLogits": "the binary cross entropy",
    "Pow": "a squared difference from the target",
    "Mul": "a squared difference from the target",
    "Abs": "an absolute difference from the target",
    "LinalgVectorNorm": "the distance from the target",
    "Norm": "the distance from the target",
}
TOLD = (Zeroed, Probabilities, Rectified, Broadcast, NonFinite, ClipScaled, EditedByHand, ClippedByHook)
"""Events that themselves explain a loss that rises or stays at chance."""


class End(NamedTuple):
    """How a training ended whose loss is known: all in the units of the loss function.

    guess: what a constant guess costs. even: what one costs that knows nothing of the targets either. low: the loss at
    the end, of which three in four losses are higher.
    """

    kind: type[Guess]
    values: list[float]
    start: float
    low: float
    last: float
    guess: float
    even: float
    place: Place


@detector("run/loss-diverged")
def loss_diverged(record: RankRecord) -> Iterator[Sighting]:
    """The loss ends far above its start and a guess that knows nothing, or its negative is what is minimized."""
    yield from _ascents(record)
    end = _end(record)
    is_explained = any(is_beyond(each) for each in record.all(Rate)[-1:]) or any(
        True for _ in learning_rate_too_high.look(record)
    )
    if end is None or is_explained:
        return
    if end.low < WORSE[end.kind] * max(end.start, end.even):
        return
    rate = _rate(record)
    beside = f"; the learning rate is {rate.lr:g} ({rate.optimizer})" if rate else ""
    yield from _told(record, end, f"and stayed there over the last {len(end.values) // LATE} steps{beside}")


@detector("run/learning-rate-too-high")
def learning_rate_too_high(record: RankRecord) -> Iterator[Sighting]:
    """The first updates are as large as the weights, and the loss ends no lower than that of a constant guess."""
    end, rate = _end(record), _rate(record)
    if any(is_beyond(each) for each in record.all(Rate)[-1:]):
        return  # the schedule is to blame
    large = [each.ratio for each in record.all(UpdateSize) if each.at < FIRST and isfinite(each.ratio)]
    if rate is None or rate.lr is None or not large or max(large) < LARGE:
        return
    size = f"{max(large):.2g} times" if max(large) >= 1 else f"{max(large):.0%} of".replace("%", " %")
    fact = f"with a learning rate of {rate.highest:g} ({rate.optimizer}) an update was {size} the size of the weights"
    if end is None:
        yield from _risen(record, rate, fact) if max(large) >= HALF else ()
        return
    leaps = _peak(end) >= LEAP * max(end.start, end.even)
    learned = end.last < AT_GUESS * end.guess or end.low < NEAR_GUESS * end.guess
    if learned or not (leaps or max(large) >= HALF):
        return
    rose = f", and the loss rose to {_peak(end):.3g} at first" if leaps else ""
    yield from _told(record, end, f"{fact}{rose}")


def _risen(record: RankRecord, rate: Rate, fact: str) -> Iterator[Sighting]:
    """A loss of several terms, of which nobody knows what a guess costs, that ends far above its start."""
    values = [row.loss for row in record.every_step if row.boundary == "optimizer" and row.loss is not None]
    if sole_loss(record) is not None or len(values) < ENOUGH or _is_explained(record) or min(values) <= 0:
        return
    start, low = values[0], quantile(sorted(values[-len(values) // LATE :]), 0.25)
    if all(map(isfinite, values)) and low >= RISEN * start:
        fact = f"the loss was {start:.3g} at the start, and above {low:.3g} in three of four steps at the end; {fact}"
        place = Place(rate.path or None, rate.line or None, rank=record.rank)
        yield from further(Sighting(place, fact, low / start, "times its start"), rate.further)


def _ascents(record: RankRecord) -> Iterator[Sighting]:
    """Passes through one line that differentiate minus a loss, which grows. No game, in which optimizers with opposed
    losses take turns; no search for an input; nothing that comes after a training, which it is to undo; and no ascent
    that the optimizer was asked for.
    """
    maximizes = any(each.maximizes for each in record.all(Rate))
    for event in record.all(Ascent):
        before, after = median(event.first), median(event.last)
        is_meant = maximizes or event.before or event.turns >= GAME or not event.owned
        if is_meant or event.passes < ASCENTS or after < GROWN * before:
            continue
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        name = SPELT.get(event.loss, event.loss)
        fact = (
            f"{event.passes} backward passes began at minus {name}, which grew from {before:.3g} to {after:.3g}: the "
            "training makes it as large as it can"
        )
        yield Sighting(place, fact, after / max(before, 1e-12), "times its start")


def _told(record: RankRecord, end: End, why: str) -> Iterator[Sighting]:
    fact = f"the loss was {end.start:.3g} at the start and {end.last:.3g} at the end of {len(end.values)} steps, where "
    fact += f"a constant guess costs {end.guess:.3g}; {why}"
    seen = Sighting(end.place, fact, end.last / max(end.guess, 1e-12), "times a constant guess")
    rate = _rate(record)
    if rate is None:
        yield seen
        return
    says = f"{rate.optimizer} is built here, with a learning rate of {rate.highest:g}"
    yield from further(seen, [(says, rate.path, rate.line), *rate.further])


def _end(record: RankRecord) -> End | None:
    """None where the loss is not one that a guess can be held against, something else explains it, or it is soon."""
    sole = sole_loss(record)
    if sole is None or _is_explained(record):
        return None
    rows = [row.loss for row in record.every_step if row.boundary == "optimizer"]
    values = [loss * sole.divided for loss in rows if loss is not None]
    guess = [each.prior for each in sole.told if each.prior and isfinite(each.prior)]
    even = [cost for each in sole.told if each.prior is not None and (cost := _even(each)) is not None]
    if len(values) < ENOUGH or not all(map(isfinite, values)) or not guess or not all(map(isfinite, even)):
        return None
    late = sorted(values[-len(values) // LATE :])
    first = sole.told[0]
    place = Place(first.path or None, first.line or None, rank=record.rank)
    cost = guess[-1] if sole.kind is Classes else median(guess)
    if min(guess) <= 0 or values[0] <= 0:
        return None
    return End(sole.kind, values, values[0], quantile(late, 0.25), median(late), cost, max([*even, cost]), place)


def _is_explained(record: RankRecord) -> bool:
    """By an event that tells why; or a loss that rises is meant: a game, or an ascent."""
    rates = record.all(Rate)
    is_meant = len({each.number for each in rates}) > 1 or any(each.maximizes for each in rates)
    return is_meant or any(record.has(kind) for kind in TOLD)


def _even(guess: Guess) -> float | None:
    """What a guess costs that knows nothing of the targets."""
    if isinstance(guess, Classes):
        return guess.even
    return guess.zero if isinstance(guess, Targets) else None


def _peak(end: End) -> float:
    """The highest loss of three neighbouring steps in the first half."""
    return _highest(end.values[: max(3, len(end.values) // 2)])


def _highest(values: Sequence[float]) -> float:
    return max(median(values[at : at + 3]) for at in range(len(values) - 2))


def _rate(record: RankRecord) -> Rate | None:
    return next(reversed(record.all(Rate)), None)
