"""What the training itself did: the course of its loss, what a constant guess costs, and the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import median
from typing import Any, NamedTuple

from torchtriage.examine.run.job.events import Classes, Guess, Rate, Targets
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import quantile

BEGIN = 5  # losses whose median is the first one: one batch is luck, and fifty are no beginning any more
SHARE = 20  # the last loss is the median of the last one in so many, and of BEGIN at least
MOST = 50  # losses of such a window
LEAP = 1.25  # times the very first loss, by which a few steps have made it worse
LEAST = 0.02  # of the first loss: a course that changes by less is level
BACK = 0.5  # of what was gained, at least, is lost again where a loss falls and then rises
ROUND = 0.05  # a loss is divided by a whole number of micro-batches, whose losses differ by so much
ALIKE = 1.5  # times, at most, by which the ratios of micro-batches to the loss of their step differ
FRESH = 3  # batches, at least, that are held against one another
GUESSES: dict[type[Guess], str] = {Classes: "entropy of the targets", Targets: "variance of the targets"}


class Scale(NamedTuple):
    """A loss function that alone makes the loss of the training, and by how much its value was divided there."""

    kind: type[Guess]  # that tells it
    told: Sequence[Guess]
    divided: int


def training(record: RankRecord) -> dict[str, Any]:
    """The course of the training loss with the learning rate beside it.

    Losses are those of backward passes, so no evaluation is among them. Where one loss function alone makes them, they
    are given as it gave them, not divided by the number of micro-batches. Of several optimizers, whose losses may be
    opposed, each has its own in `optimizers`, and `loss` is that of the one that steps last.
    """
    scale = sole_loss(record)
    divided = scale.divided if scale else 1
    values = [row.loss * divided for row in record.every_step if row.loss is not None]
    figures = course(values)
    return {
        "steps": record.count,
        "passes": sum(row.epochs for row in record.every_step),
        "loss": figures and {**figures, **_guess(scale)},
        "learning_rate": learning_rate(record),
        "optimizers": _optimizers(record),
    }


def sole_loss(record: RankRecord) -> Scale | None:
    """The loss function of which every backward pass takes one value, but for a whole divisor; None where there is
    none, or none is known.
    """
    kinds = [kind for kind in GUESSES if record.has(kind)]
    if len(kinds) != 1:
        return None
    told: list[Guess] = record.all(kinds[0])
    places = {(guess.line, guess.classes) for guess in told}
    if len(places) > 1 or not all(guess.alone and not guess.others for guess in told):
        return None
    if kinds[0] is Classes and told[0].classes < 2:
        return None
    rows = {row.step: row.loss for row in record.every_step if row.boundary == "optimizer"}
    pairs = [(rows.get(guess.at), _of_one(guess)) for guess in told]
    ratios = [value / loss for loss, value in pairs if loss and value and isfinite(loss) and isfinite(value)]
    if not ratios or min(ratios) <= 0 or max(ratios) > ALIKE * min(ratios):
        return None
    divided = max(1, round(median(ratios)))
    return Scale(kinds[0], told, divided) if abs(median(ratios) / divided - 1) < ROUND else None


def _of_one(guess: Guess) -> float | None:
    """The value of a loss for one answer, though it be a sum."""
    return guess.value / guess.summed if guess.value is not None else None


def course(values: Sequence[float]) -> dict[str, Any] | None:
    """First, last and lowest loss as medians of neighbouring steps, and how it went; None without a loss.

    `level` is a change by less than the noise of the last steps, or than a fiftieth of the first loss.
    """
    if not values:
        return None
    width = max(1, min(BEGIN, len(values) // 4))
    late = list(values[-max(width, min(len(values) // SHARE, MOST)) :])
    known = [value for value in values if isfinite(value)]
    bad = sum(not isfinite(value) for value in late)
    if not known or 2 * bad > len(late):
        told = {"first": known[0] if known else None, "last": None, "lowest": min(known, default=None)}
        return {**told, "course": "non-finite"}
    first, last = _first(known[:width]), median(value for value in late if isfinite(value))
    lowest = min(median(known[at : at + width]) for at in range(len(known) - width + 1))
    ordered = sorted(value for value in late if isfinite(value))
    noise = max(quantile(ordered, 0.75) - quantile(ordered, 0.25), LEAST * abs(first))
    return {"first": first, "last": last, "lowest": lowest, "course": _word(first, last, lowest, noise)}


def _first(values: Sequence[float]) -> float:
    """The median of the first losses, or the very first one where training has thrown the loss up at once."""
    usual = median(values)
    return min(usual, values[0]) if usual > LEAP * values[0] > 0 else usual


def _word(first: float, last: float, lowest: float, noise: float) -> str:
    gained, lost = first - lowest, last - lowest
    if gained > noise and lost > noise and lost > BACK * gained:
        return "falls-then-rises"
    if last < first - noise:
        return "falls"
    return "rises" if last > first + noise else "level"


def learning_rate(record: RankRecord) -> dict[str, Any] | None:
    """First, last and highest rate of the first optimizer, with the line that builds it."""
    lines = [event for event in record.all(Rate) if event.number == 0 and event.lr is not None]
    if not lines:
        return None
    begin, end = lines[0], lines[-1]
    place = {"optimizer": end.optimizer, "path": end.path or None, "line": end.line or None}
    return {"first": begin.lr, "last": end.lr, "highest": max(each.highest for each in lines), **place}


def _optimizers(record: RankRecord) -> list[dict[str, Any]]:
    """Of each optimizer: its name, its rate, and the medians of the losses of its first and of its last turns."""
    last = {event.number: event for event in record.all(Rate)}
    return [{"optimizer": event.optimizer, "learning_rate": event.lr, **_ends(event.losses)} for event in last.values()]


def _ends(losses: Mapping[str, Sequence[float]]) -> dict[str, float | None]:
    known = {name: [value for value in losses[name] if isfinite(value)] for name in ("first", "last")}
    return {name: median(values) if values else None for name, values in known.items()}


def _guess(scale: Scale | None) -> dict[str, Any]:
    """What a constant guess costs, the figure that no loss can be below, and whether all batches that were looked at
    had targets of their own, where that was seen.
    """
    if scale is None:
        return {"constant": None, "constant_of": None, "floor": None, "fresh": None}
    marks = [each.mark for each in scale.told if each.mark is not None]
    fresh = len(set(marks)) == len(marks) if len(marks) >= FRESH else None
    constants = [each.prior for each in scale.told if each.prior is not None and isfinite(each.prior)]
    floors = [each.floor for each in scale.told if each.floor is not None and isfinite(each.floor)]
    constant = (constants[-1] if scale.kind is Classes else median(constants)) if constants else None
    named = GUESSES[scale.kind] if constant is not None else None
    floor = median(floors) if floors else 0.0
    return {"constant": constant, "constant_of": named, "floor": floor + 0.0, "fresh": fresh}
