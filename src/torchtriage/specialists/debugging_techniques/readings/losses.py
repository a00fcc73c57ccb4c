"""What a record says about losses: what they were given, and whether they ever left chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite, log, sqrt
from statistics import mean, stdev
from typing import NamedTuple

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Classes, Made, Setup
from torchtriage.examine.run.measures.training import sole_loss
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import (
    Births,
    Broadcast,
    Probabilities,
    Samples,
    Unowned,
)
from torchtriage.specialists.debugging_techniques.readings.diverged import TOLD, learning_rate_too_high
from torchtriage.specialists.debugging_techniques.readings.gradients import dead_units, gradients_vanishing
from torchtriage.specialists.debugging_techniques.readings.rates import learning_rate_too_low

ENOUGH = 100  # steps: before, the loss of a healthy network may still stand at chance
BLOCKS = 10  # means of neighbouring steps, which are nearly independent where single steps are not
NEAR = 0.01  # of ln(classes) below it: who has learned the classes' frequencies alone is further down than that
FAR = 0.25  # above it: that is a loss that diverges
SURE = 2.0  # standard errors
LOOSE = 0.04  # by which the cost of a guess may be wrong where it goes by the frequencies that were seen
GAINS = 4  # late steps, at least, in which answers were handed on
KNOWN = 0.02  # of chance: twice what is known of the labels
SLOW = 1e-6  # a learning rate with which next to nothing is learned
FORGOTTEN = 0.005  # of ln(classes), by which the last quarter may lie below the one before it

_BY_HAND = {"Sub": "a difference", "Mul": "a product"}
_NAMES = {**_BY_HAND, "MseLoss": "mse_loss", "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss"}


@detector("run/softmax-before-cross-entropy")
def softmax_before_cross_entropy(record: RankRecord) -> Iterator[Sighting]:
    """Probabilities go into a loss that applies softmax or sigmoid itself."""
    for event in {(each.word, each.loss): each for each in record.all(Probabilities)}.values():
        line = f" in line {event.loss_line}" if event.loss_line else ""
        given = "probabilities" if event.word == "probabilities" else f"the {event.word} of them"
        fact = f"{event.loss}{line} expects logits and is given {given}, in {event.times} steps that were watched"
        yield from further(Sighting(_place(record, event), fact, float(event.times), "steps"), event.further)


@detector("run/loss-broadcast")
def loss_broadcast(record: RankRecord) -> Iterator[Sighting]:
    """A prediction and a target of different shapes are compared all with all."""
    for event in {each.loss: each for each in record.all(Broadcast)}.values():
        first, second = (tuple(shape) for shape in event.given)
        fact = f"{_NAMES[event.loss]} of shapes {first} and {second} compares each prediction with every target, "
        seen = Sighting(_place(record, event), f"{fact}{event.times} times", float(event.times), "times")
        yield from further(seen, event.further)


@detector("run/loss-at-chance")
def loss_at_chance(record: RankRecord) -> Iterator[Sighting]:
    """The loss of a classifier is that of a guess, from the middle of the run to its end."""
    told = record.all(Classes)
    values = _losses(record, told)
    homeless = any(event.groups for event in record.all(Unowned)[-1:])
    if len(values) < ENOUGH or homeless or any(record.has(kind) for kind in TOLD) or _passing(record):
        return
    named = (gradients_vanishing, dead_units, learning_rate_too_high, learning_rate_too_low)
    if any(each for look in named for each in look.look(record)):
        return  # the reason has a name
    late = values[len(values) // 2 :]
    gains = [each.gain for each in told if each.at >= len(values) // 2 and each.gain and isfinite(each.gain)]
    guess = _guess(told, gains)
    blocks = _blocks(late)
    middle, error = mean(blocks), stdev(blocks) / sqrt(BLOCKS)
    fallen = (guess.chance - middle) / guess.chance
    if fallen + SURE * error / guess.chance > guess.near or middle > (1 + FAR) * guess.even:
        return
    if not (_ignorant(gains, blocks, guess) if guess.shown else not _falling(blocks, guess.chance)):
        return
    fact = (
        f"the loss was {middle:.4g} over the last {len(late)} of {len(values)} steps, and {guess.says}: "
        f"nothing was learned{_cause(record, told)}"
    )
    place = Place(path=told[-1].path or None, line=told[-1].line or None, rank=record.rank)
    seen = Sighting(place, fact, float(len(values)), "steps")
    slow = any(rate is not None and rate <= SLOW for rate in _rates(record))
    lines = [line for event in record.all(Births) if slow for line in event.further]
    lines += [line for event in record.all(Samples)[-1:] for line in event.further]
    yield from further(seen, lines)


def _passing(record: RankRecord) -> bool:
    """Whether forward passes go through layers that are new each time: what they learn is lost, which is told."""
    return any(2 * event.passes >= event.of and not event.touched for event in record.all(Made))


class _Guess(NamedTuple):
    """What the best guess without looking costs, in nats, and an even one; how far below it chance is left, as a share;
    whether the labels, as told, must show that nothing of them is known.
    """

    chance: float
    even: float
    near: float
    shown: bool
    says: str


def _guess(told: list[Classes], gains: Sequence[float]) -> _Guess:
    """By the labels that were seen where answers were handed on, else by the number of classes."""
    classes, prior = told[0].classes, told[-1].prior
    even = told[-1].even or log(classes)
    if len(gains) < GAINS or not prior:
        says = f"ln({classes}) = {log(classes):.4g} is what a guess among {classes} classes costs"
        return _Guess(log(classes), even, NEAR, shown=False, says=says)
    says = f"a guess by the frequencies of the classes costs {prior:.4g}"
    if prior > (1 - LOOSE) * even:
        says = f"ln({classes}) = {even:.4g} is what a guess among {classes} classes costs"
    return _Guess(prior, even, NEAR + LOOSE, shown=True, says=says)


def _ignorant(gains: Sequence[float], blocks: Sequence[float], guess: _Guess) -> bool:
    """Whether targets cost no more when they are held against other samples' answers, and the loss has not left chance
    since. It may still come down to it: how frequent the classes are is learned without the inputs.
    """
    error = stdev(gains) / sqrt(len(gains))
    surely = error <= KNOWN * guess.chance and mean(gains) <= KNOWN * guess.chance + error
    return surely and min(blocks[-2:]) > (1 - KNOWN) * guess.chance


def _losses(record: RankRecord, told: list[Classes]) -> list[float]:
    """The cross entropies of all steps; empty unless a single one of them, but for a scale, was the whole loss."""
    sole = sole_loss(record) if told else None
    if sole is None or sole.kind is not Classes:
        return []
    rows = [row.loss for row in record.every_step if row.boundary == "optimizer"]
    return [loss * sole.divided for loss in rows if loss is not None and isfinite(loss)]


def _blocks(values: Sequence[float]) -> list[float]:
    size = len(values) / BLOCKS
    return [mean(values[int(number * size) : int((number + 1) * size)]) for number in range(BLOCKS)]


def _falling(blocks: list[float], chance: float) -> bool:
    """Whether the second half lies below the first by more than luck allows: something is being learned.

    Who comes down ever so slowly, and still is surely above CHANCE, only forgets the guesses it was born with.
    """
    first, second = blocks[: BLOCKS // 2], blocks[BLOCKS // 2 :]
    error = sqrt((stdev(first) ** 2 + stdev(second) ** 2) / (BLOCKS // 2))
    drop, above = mean(first) - mean(second), mean(second) - chance
    forgets = drop < FORGOTTEN * chance and above > SURE * stdev(second) / sqrt(BLOCKS // 2)
    return drop > SURE * error and not forgets


def _cause(record: RankRecord, told: list[Classes]) -> str:
    rates = _rates(record)
    if rates and not any(rates):
        return "; the learning rate was 0 in the first step"
    spread = told[-1].spread
    if spread is not None and spread < 1e-4:
        return "; the outputs are the same for all samples: what the network was given, or a layer, is dead"
    return ""


def _rates(record: RankRecord) -> list[float | None]:
    return [each.get("lr") for event in record.all(Setup) for each in event.optimizers]


def _place(record: RankRecord, event: Broadcast | Probabilities) -> Place:
    path, line = event.path or None, event.line or None
    return Place(path=path, line=line, rank=record.rank, step=event.first, module=event.module)
