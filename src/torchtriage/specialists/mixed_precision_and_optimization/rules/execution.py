"""What an execution of the program shows about loss scaling and gradient accumulation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain
from torchtriage.examine.source.execution.values import Factor, Gradient, Tensor, Unknown

LARGE = 8
"""Static loss scales are 8 to 32,768 in Mixed Precision Training (arXiv 1710.03740); a loss weighs about 1."""


@detector("source/clip-before-unscale")
def clip_before_unscale(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients are clipped while they are multiplied by the loss scale."""

    def find(training: Training) -> Facts:
        for clip in training.of(events.Clip):
            scaled = [each for each in clip.gradients if each.scaled is not None and each.by]
            if scaled and len(scaled) == len(clip.gradients):
                spot, _ = scaled[0].by[-1]
                yield clip.spot, f"the gradients of line {spot.line} are still multiplied by the loss scale"

    yield from certain(trainings, find, where_reached=True)


@detector("source/scaler-bypassed")
def scaler_bypassed(trainings: Trainings) -> Iterator[Sighting]:
    """An optimizer steps by itself with gradients that are multiplied by the loss scale."""

    def find(training: Training) -> Facts:
        for step in training.of(events.OptimizerStep):
            scaled = [gradient for _, gradient in step.gradients if gradient.scaled is not None]
            if step.scaler is None and scaled and len(scaled) == len(step.gradients):
                yield step.spot, "the gradients are multiplied by the loss scale, and scaler.step is not called"

    yield from certain(trainings, find, where_reached=True)


@detector("source/scaler-missing")
def scaler_missing(trainings: Trainings) -> Iterator[Sighting]:
    """A loss that was computed in float16 is not scaled before backward."""

    def find(training: Training) -> Facts:
        if training.speaks_of_scaling:
            return
        for forward, backward in training.backwards:
            if forward.autocast == "float16" and backward.loss.scaled is None and not _is_multiplied(backward.loss):
                yield (
                    backward.spot,
                    f"the forward pass of line {forward.spot.line} runs in float16, and no scaler scales its loss",
                )

    yield from certain(trainings, find)


@detector("source/loss-not-averaged-over-accumulation")
def loss_not_averaged_over_accumulation(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients of several batches are added up, and nothing is divided by their number."""

    def find(training: Training) -> Facts:
        for step in training.of(events.OptimizerStep):
            sums = [gradient for _, gradient in step.gradients if _is_sum_of_means(gradient)]
            if sums and len(sums) == len(step.gradients):
                spot, _ = sums[0].by[-1]
                number = len(sums[0].by)
                yield spot, f"the gradients of {number} mean losses are added up for the step in line {step.spot.line}"

    yield from certain(trainings, find)


def _is_multiplied(loss: Tensor) -> bool:
    """Whether LOSS was multiplied by a loss scale of the program's own: a large number, or what is called so."""
    factors = [each.value for each in loss.divided if isinstance(each, Factor)]
    large = any(isinstance(each, Tensor) or (isinstance(each, int | float) and each >= LARGE) for each in factors)
    return large or any(isinstance(each, Unknown) and "scale" in each.why.lower() for each in factors)


def _is_sum_of_means(gradient: Gradient) -> bool:
    """Whether GRADIENT adds up mean losses that one line has computed of several batches, none of them divided."""
    lines = {(spot.path, spot.line) for spot, _ in gradient.by}
    means = [loss.loss and not loss.divided for _, loss in gradient.by]
    return not gradient.used and len(means) > 1 and len(lines) == 1 and all(means)


@detector("source/scaler-not-updated")
def scaler_not_updated(trainings: Trainings) -> Iterator[Sighting]:
    """A scaler steps again and again, and update() is never called."""

    def find(training: Training) -> Facts:
        updated = {id(each.scaler) for each in training.of(events.ScalerUpdate)}
        steps = [each for each in training.of(events.OptimizerStep) if each.scaler is not None]
        for step in steps[1:]:
            if id(step.scaler) not in updated and "update" not in training.blind:
                yield step.spot, "the scaler has stepped before, and update() is never called"

    yield from certain(trainings, find)


@detector("source/scaler-with-bf16")
def scaler_with_bf16(trainings: Trainings) -> Iterator[Sighting]:
    """A loss that was computed in bfloat16 is scaled."""

    def find(training: Training) -> Facts:
        for forward, backward in training.backwards:
            scaler = backward.loss.scaled
            if forward.autocast == "bfloat16" and scaler is not None and scaler.spot is not None:
                yield scaler.spot, f"the forward pass of line {forward.spot.line} runs in bfloat16"

    yield from certain(trainings, find)


@detector("source/backward-in-autocast")
def backward_in_autocast(trainings: Trainings) -> Iterator[Sighting]:
    """Backward is called within the autocast region."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            if backward.autocast:
                yield backward.spot, f"autocast to {backward.autocast} is still on here"

    yield from certain(trainings, find, where_reached=True)


@detector("source/bce-under-autocast")
def bce_under_autocast(trainings: Trainings) -> Iterator[Sighting]:
    """binary_cross_entropy is called under autocast, which raises on CUDA."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LossCall):
            if call.name == "binary_cross_entropy" and call.autocast == "float16":
                yield call.spot, "autocast to float16 is on, under which CUDA refuses this loss"

    yield from certain(trainings, find, where_reached=True)


@detector("source/scaler-touched-mid-accumulation")
def scaler_touched_mid_accumulation(trainings: Trainings) -> Iterator[Sighting]:
    """The scale is updated between batches whose gradients are added up: they are multiplied by two scales."""

    def find(training: Training) -> Facts:
        pending: dict[int, events.Backward] = {}
        for event in training.executor.events:
            if isinstance(event, events.Backward) and event.loss.scaled is not None:
                pending[id(event.loss.scaled)] = event
            elif isinstance(event, events.OptimizerStep) and event.scaler is not None:
                pending.pop(id(event.scaler), None)
            elif isinstance(event, events.ScalerUpdate) and "step" not in training.blind:
                added = pending.pop(id(event.scaler), None)
                if added is not None:
                    yield (
                        event.spot,
                        f"the gradients of line {added.spot.line} wait for a step, multiplied by the old scale",
                    )

    yield from certain(trainings, find, where_reached=True)


@detector("source/half-model-trained")
def half_model_trained(trainings: Trainings) -> Iterator[Sighting]:
    """A model is cast to float16 as a whole, and trained so."""

    def find(training: Training) -> Facts:
        if training.speaks_of_scaling or training.mentions(_MASTERS):
            return
        for cast in training.of(events.Move):
            inside = set(training.executor.parameters(cast.module)) if cast.format == "float16" else set()
            for step in training.of(events.OptimizerStep):
                mine = {parameter for parameter, _ in step.gradients}
                if inside & mine and training.executor.events.index(cast) < training.executor.events.index(step):
                    yield cast.spot, f"line {step.spot.line} updates float16 weights: small updates round to nothing"
                    break

    yield from certain(trainings, find, where_reached=True)


_MASTERS = re.compile(rb"master|fp32|deepspeed|apex|accelerat", re.IGNORECASE)


@detector("source/unstable-composition")
def unstable_composition(trainings: Trainings) -> Iterator[Sighting]:
    """A logarithm is taken of a softmax or a sigmoid: log(0) where one combined operation has a number."""

    def find(training: Training) -> Facts:
        for call in training.of(events.Composed):
            if call.inner in ("softmax", "sigmoid"):
                yield call.spot, f"this is the {call.name} of a {call.inner}, which may be 0"

    yield from certain(trainings, find, where_reached=True)
