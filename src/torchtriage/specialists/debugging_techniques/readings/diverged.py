"""What a record says about losses that end above what nobody needs to learn, and about the learning rate behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from statistics import median
from typing import Any, NamedTuple

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.further import further
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series import quantile
from torchtriage.examine.run.training import sole_loss

ENOUGH = 100  # losses: before, a loss that leapt up at first may still come down
LATE = 4  # the last one in so many is the end of a run
WORSE = {"classes": 1.5, "targets": 4.0}  # times the start and a constant guess: squares grow twice as fast
LEAP = 1.25  # times the start and a constant guess, to which the loss rose early on
AT_GUESS, NEAR_GUESS = (
    0.98,
    0.9,
)  # of a constant guess: whose median, and three in four losses, end above has learned nothing
LARGE = 0.1  # of the weights, in one update; healthy ones are a thousandth to a hundredth, 0.03 in a first step of Adam
HALF = 0.5  # of the weights, in one update: what they were is gone, whether or not the loss leaps
FIRST = 10  # steps in which updates are that large, where the rate is to blame
TOLD = ("zeroed", "probabilities", "broadcast", "non-finite", "clip-scaled", "edited-by-hand", "clipped-by-hook")
"""Events that explain a loss that rises themselves."""


class End(NamedTuple):
    """How a training ended whose loss is known: all in the units of the loss function.

    guess: what a constant guess costs. even: what one costs that knows nothing of the targets either. low: the loss at
    the end, of which three in four losses are higher.
    """

    kind: str
    values: list[float]
    start: float
    low: float
    last: float
    guess: float
    even: float
    place: Place


@detector("run/loss-diverged")
def loss_diverged(record: RankRecord) -> Iterator[Sighting]:
    """The loss ends far above its start, and above what a guess costs that knows nothing."""
    end = _end(record)
    if end is None or any(True for _ in learning_rate_too_high.look(record)):
        return
    if end.low < WORSE[end.kind] * max(end.start, end.even):
        return
    rate = _rate(record)
    beside = f"; the learning rate is {rate['lr']:g} ({rate['optimizer']})" if rate else ""
    yield from _told(record, end, f"and stayed there over the last {len(end.values) // LATE} steps{beside}")


@detector("run/learning-rate-too-high")
def learning_rate_too_high(record: RankRecord) -> Iterator[Sighting]:
    """The first updates are as large as the weights, and the loss ends no lower than that of a constant guess."""
    end, rate = _end(record), _rate(record)
    large = [each["ratio"] for each in record.all("update-size") if each["at"] < FIRST and isfinite(each["ratio"])]
    if end is None or rate is None or rate.get("lr") is None or not large or max(large) < LARGE:
        return
    leaps = _peak(end) >= LEAP * max(end.start, end.even)
    learned = end.last < AT_GUESS * end.guess or end.low < NEAR_GUESS * end.guess
    if learned or not (leaps or max(large) >= HALF):
        return
    size = f"{max(large):.2g} times" if max(large) >= 1 else f"{max(large):.0%} of".replace("%", " %")
    fact = f"with a learning rate of {rate['highest']:g} ({rate['optimizer']}) an update was {size} the size of the "
    rose = f", and the loss rose to {_peak(end):.3g} at first" if leaps else ""
    yield from _told(record, end, f"{fact}weights{rose}")


def _told(record: RankRecord, end: End, why: str) -> Iterator[Sighting]:
    fact = f"the loss was {end.start:.3g} at the start and {end.last:.3g} at the end of {len(end.values)} steps, where "
    fact += f"a constant guess costs {end.guess:.3g}; {why}"
    seen = Sighting(end.place, fact, end.last / max(end.guess, 1e-12), "times a constant guess")
    rate = _rate(record)
    if rate is None:
        yield seen
        return
    built = (
        f"{rate['optimizer']} is built here, with a learning rate of {rate['highest']:g}",
        rate["path"],
        rate["line"],
    )
    yield from further(seen, {"further": [built] if rate["line"] else []})


def _end(record: RankRecord) -> End | None:
    """None where the loss is not one that a guess can be held against, something else explains it, or it is soon."""
    sole = sole_loss(record)
    if sole is None or any(record.all(kind) for kind in TOLD):
        return None
    if len({each["number"] for each in record.all("rate")}) > 1 or any(e.get("maximizes") for e in record.all("rate")):
        return None  # a game, or an ascent
    rows = [row.get("loss") for row in record.every_step if not row.get("boundary")]
    values = [loss * sole.divided for loss in rows if loss is not None]
    guess = [each["prior"] for each in sole.told if isfinite(each.get("prior") or float("nan"))]
    even = [each["even" if sole.kind == "classes" else "zero"] for each in sole.told if each.get("prior") is not None]
    if len(values) < ENOUGH or not all(map(isfinite, values)) or not guess or not all(map(isfinite, even)):
        return None
    late = sorted(values[-len(values) // LATE :])
    first: dict[str, Any] = sole.told[0]
    place = Place(first.get("path") or None, first.get("line") or None, rank=record.rank)
    cost = guess[-1] if sole.kind == "classes" else median(guess)
    if min(guess) <= 0 or values[0] <= 0:
        return None
    return End(sole.kind, values, values[0], quantile(late, 0.25), median(late), cost, max(*even, cost), place)


def _peak(end: End) -> float:
    """The highest loss of three neighbouring steps in the first half."""
    return _highest(end.values[: max(3, len(end.values) // 2)])


def _highest(values: Sequence[float]) -> float:
    return max(median(values[at : at + 3]) for at in range(len(values) - 2))


def _rate(record: RankRecord) -> dict[str, Any] | None:
    return next(reversed(record.all("rate")), None)
