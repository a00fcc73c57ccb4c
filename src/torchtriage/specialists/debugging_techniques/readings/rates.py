"""What a record says about updates that are too small: all point one way, and lead nowhere in the time there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import NamedTuple

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Classes, Guess, Rate, Targets
from torchtriage.examine.run.measures.training import sole_loss
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Betas, UpdateSize

ENOUGH = 100  # steps and losses
PACE = 1e-4  # of the weights' size a step, in the sum of all updates: learning-rate-too-low.md's measurements
STRAIGHT = 0.7  # of the lengths of all updates together, what they come to: an optimizer that has got anywhere turns
BEGUN = 0.9  # of what a constant guess costs, at least, a network pays that has learned nothing yet
FALLEN = 0.75  # of its start, above which the loss still is
STRAIGHTER, STOOD = 0.8, 0.95  # the same of a sum of losses, of which nobody knows what a guess costs
BETA = 0.95  # of the mean of gradients: an average over 20 steps does no harm, whatever that of the squares is
WARM = 0.5, 0.9  # of the highest rate: below the first at the start, and above the second at the end, it is warming up


class Way(NamedTuple):
    """What the updates of an optimizer came to. moved: as a ratio to the weights. share: of their lengths together."""

    steps: int
    moved: float
    share: float


@detector("run/learning-rate-too-low")
def learning_rate_too_low(record: RankRecord) -> Iterator[Sighting]:
    """A training from scratch whose updates all point one way, and are so small that the loss hardly falls."""
    rates, way, loss = record.all(Rate), _way(record.recent(UpdateSize)), _loss(record)
    if loss is None or way is None or not rates or len({each.number for each in rates}) > 1 or _is_warming(rates):
        return
    straight, begun, fallen = (STRAIGHT, BEGUN * loss.guess, FALLEN) if loss.guess else (STRAIGHTER, 0.0, STOOD)
    if way.share < straight or way.moved > PACE * way.steps or loss.first < begun or loss.last < fallen * loss.first:
        return
    rate = rates[-1]
    fact = (
        f"{way.steps} updates have moved the weights by {way.moved:.2%} of their size, and point one way (what they "
        f"come to is {way.share:.0%} of their lengths together); the loss was {loss.first:.3g} at the start and "
        f"{loss.last:.3g} at the end: longer steps would go the same way"
    )
    place = Place(path=rate.path or None, line=rate.line or None, rank=record.rank)
    seen = Sighting(place, fact, way.share, "of the lengths of the updates")
    says = f"this is the loss; {rate.optimizer} has a learning rate of {rate.highest:g} at most"
    yield from further(seen, [(says, loss.path, loss.line), *rate.further])


class Loss(NamedTuple):
    """The loss at the start and at the end of a run. guess: what a constant one costs; 0 where that is not known."""

    first: float
    last: float
    guess: float
    path: str
    line: int


def _loss(record: RankRecord) -> Loss | None:
    """None of too few steps. Of a sum of losses each term that is known has to stand where a guess is."""
    sole = sole_loss(record)
    rows = [row.loss for row in record.every_step if row.boundary == "optimizer"]
    values = [loss * (sole.divided if sole else 1) for loss in rows if loss is not None]
    guesses = [each.prior for each in sole.told if each.prior and isfinite(each.prior)] if sole else []
    if len(values) < ENOUGH or bool(sole) > bool(guesses) or (not sole and (min(values) <= 0 or not _stand(record))):
        return None
    path, line = (sole.told[0].path or "", sole.told[0].line or 0) if sole else ("", 0)
    return Loss(median(values[:5]), median(values[-len(values) // 4 :]), min(guesses, default=0.0), path, line)


def _stand(record: RankRecord) -> bool:
    """Whether there are terms of the loss that are known, and each began at what a guess costs, and is there still."""
    terms: dict[tuple[str | None, int | None], list[Guess]] = {}
    for each in [*record.all(Classes), *record.all(Targets)]:
        terms.setdefault((each.path, each.line), []).append(each)
    return bool(terms) and all(map(_stands, terms.values()))


def _stands(looks: Sequence[Guess]) -> bool:
    first, last = looks[0], looks[-1]
    if first.value is None or last.value is None or not first.prior or first.at == last.at:
        return False
    return first.value >= BEGUN * first.prior and last.value >= STOOD * first.value


def _way(sizes: Sequence[UpdateSize]) -> Way | None:
    """None of several optimizers, of too few steps, and of weights that were loaded: tuning is to move them little."""
    rows = [each for each in sizes if each.moved is not None and isfinite(each.ratio) and isfinite(each.moved)]
    if len({each.optimizer for each in rows}) != 1 or rows[-1].loaded or rows[-1].at - rows[0].at + 1 < ENOUGH:
        return None
    last, steps = rows[-1], rows[-1].at - rows[0].at + 1
    length = rows[0].ratio + sum((one.ratio + two.ratio) / 2 * (two.at - one.at) for one, two in pairwise(rows))
    moved = last.moved or 0.0
    return Way(steps, moved, moved / length) if moved > 0 and length > 0 else None


def _is_warming(rates: Sequence[Rate]) -> bool:
    """Whether the rate is still rising, or is not known, or is meant to climb."""
    known = [each.lr for each in rates if each.lr is not None]
    highest = rates[-1].highest
    if not known or rates[-1].maximizes or rates[-1].lr is None or highest <= 0:
        return True
    return known[0] < WARM[0] * highest and known[-1] > WARM[1] * highest


@detector("run/betas-swapped")
def betas_swapped(record: RankRecord) -> Iterator[Sighting]:
    """Adam averages gradients over more steps than their squares: how many times as many."""
    for event in record.all(Betas):
        if event.first <= BETA or not 0 < event.second < event.first < 1:
            continue
        long, short = 1 / (1 - event.first), 1 / (1 - event.second)
        fact = (
            f"{event.optimizer} is built with betas=({event.first:g}, {event.second:g}): it averages gradients over "
            f"some {long:.0f} steps and scales that by squares of the last {short:.0f}; "
            f"({event.second:g}, {event.first:g}) is the usual order"
        )
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        yield Sighting(place, fact, long / short, "times as many steps")
