"""What an execution of the program shows about learning rates and their schedules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, by_default, certain
from torchtriage.examine.source.execution.values import Object, Value
from torchtriage.examine.source.torch_api.symbols import symbols

HIGH = {"Adam": 0.2, "AdamW": 0.2, "NAdam": 0.2, "RAdam": 0.2, "Adamax": 0.2}
"""Rates at which a step replaces the weights of a network: Adam at 0.1 moves them by 98 % in its first one (measured;
the page of this fault). A step of SGD is as long as the gradient, and word models are trained at 20 with clipped ones.
"""


@detector("source/learning-rate-too-high")
def learning_rate_too_high(trainings: Trainings) -> Iterator[Sighting]:
    """An optimizer of a network begins with a rate at which each step replaces the weights."""

    def find(training: Training) -> Facts:
        if training.mentions(_SET_BY_HAND):
            return
        schedules = {id(each.made.argument("optimizer", 0)): each.made for each in training.of(events.Made)}
        for made in training.of(events.Made):
            optimizer = made.made
            rate, limit = optimizer.argument("lr", 1), HIGH.get(optimizer.made.rpartition(".")[2])
            most = _most(schedules.get(id(optimizer)))
            if limit is None or most is None or not isinstance(rate, int | float):
                continue
            if rate * most > limit and _is_of_layers(training, optimizer):
                yield made.spot, f"the rate comes to {rate * most:g}: steps of that size replace the weights"

    yield from certain(trainings, find, where_reached=True)


_SET_BY_HAND = re.compile(rb"\[[\"']lr[\"']\]\s*[*/]?=")


def _most(schedule: Object | None) -> float | None:
    """By what SCHEDULE multiplies the rate at most; None where that is not known."""
    if schedule is None or schedule.made.rpartition(".")[2] in symbols().falling_schedules:
        return 1.0
    factors = schedule.state.get("factors", [None])
    return max(factors) if all(isinstance(each, int | float) for each in factors) else None


def _is_of_layers(training: Training, optimizer: Object) -> bool:
    """Whether OPTIMIZER trains layers, and no image or other input that may change at once."""
    held = training.parameters_of(optimizer)
    return bool(held) and all(each.owner is not None and each.owner.made.startswith("torch.nn.") for each in held)


ADAMS = frozenset({"Adam", "AdamW", "NAdam", "RAdam", "Adamax", "SparseAdam", "FusedAdam", "DeepSpeedCPUAdam"})
"""Whose betas are the decays of the mean and of the mean square; with _QUANTISED endings, too. Lion's are not."""
LONGER, BETA = 3, 0.95
"""Gradients that are averaged over twice as many steps as their squares do no harm, nor any average over 20 steps (the
page of this fault).
"""
_QUANTISED = re.compile("(8bit|32bit|4bit|Fp8)$")


@detector("source/betas-swapped")
def betas_swapped(trainings: Trainings) -> Iterator[Sighting]:
    """Adam averages gradients over many more steps than their squares."""

    def find(training: Training) -> Facts:
        for optimizer in training.optimizers:
            name = _QUANTISED.sub("", optimizer.made.rpartition(".")[2]).removeprefix("Paged")
            if name not in ADAMS or optimizer.spot is None:
                continue
            given = [optimizer.argument("betas", 2), *(each.get("betas") for each in optimizer.state["groups"])]
            for first, second in filter(None, map(_swapped, given)):
                fact = f"betas=({first:g}, {second:g}): gradients are averaged over {_span(first)} steps, and scaled by"
                yield optimizer.spot, f"{fact} squares of the last {_span(second)}; the smaller one goes first"

    yield from by_default(trainings, find)


def _swapped(betas: Value) -> tuple[float, float] | None:
    """BETAS where they are two numbers, and the first belongs to a mean over many more steps."""
    numbers = [each for each in betas if isinstance(each, int | float)] if isinstance(betas, tuple | list) else []
    if len(numbers) != 2 or not 0 < numbers[1] < numbers[0] < 1:
        return None
    first, second = numbers
    return (first, second) if first > BETA and 1 - second > LONGER * (1 - first) else None


def _span(beta: float) -> str:
    return f"{1 / (1 - beta):.0f}"


@detector("source/schedule-exceeded")
def schedule_exceeded(trainings: Trainings) -> Iterator[Sighting]:
    """A schedule that is as long as the training has epochs is stepped for every batch."""

    def find(training: Training) -> Facts:
        for step in training.every_turn(training.of(events.SchedulerStep)):
            length = _length(step.scheduler)
            epochs = [training.executor.totals.get(loop) for loop, _ in step.loops[:-1]]
            if isinstance(length, int) and length > 1 and length in epochs and step.scheduler.spot is not None:
                yield (
                    step.spot,
                    f"the schedule of {step.scheduler.spot} ends after {length} steps, "
                    f"one for each epoch, and is stepped for every batch",
                )
        yield from _stepped_several_times(training)

    yield from certain(trainings, find, where_reached=True)


def _stepped_several_times(training: Training) -> Facts:
    """Schedules that move on more than once for each step of their optimizer: in a helper, and in the loop again."""
    moves = training.of(events.SchedulerStep)
    for made in (each.made for each in training.of(events.Made) if each.made.kind == "scheduler"):
        optimizer, mine = made.argument("optimizer", 0), [each for each in moves if each.scheduler is made]
        turns = [each.loops for each in training.of(events.OptimizerStep) if each.optimizer is optimizer and each.loops]
        counts = [sum(each.loops[: len(turn)] == turn for each in mine) for turn in turns]
        if len(counts) > 1 and min(counts) > 1 and len({*turns}) == len(turns):
            fact = f"it moves on {min(counts)} times for each step of the optimizer: its end comes as much earlier"
            yield mine[-1].spot, fact


def _length(scheduler: Object) -> Value:
    """How many steps SCHEDULER is long; None where that is not known or it has no end."""
    wanted = symbols().schedule_lengths.get(scheduler.made.rpartition(".")[2])
    return scheduler.argument(wanted.name, wanted.place) if wanted is not None else None
