"""What an execution of the program shows about float16 weights, and about operations that lose digits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter, Tensor
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Object
from torchtriage.specialists.mixed_precision_and_optimization.rules.compositions import compositions


@detector("source/half-model-trained")
def half_model_trained(trainings: Trainings) -> Iterator[Sighting]:
    """A model is cast to float16 as a whole, and trained so."""

    def find(training: Training) -> Facts:
        casts = [each for each in training.of(events.Move) if each.format == "float16"]
        if not casts or training.names(_MASTERS):
            return
        for cast in casts:
            inside = _inside(training, cast.module)
            for step in training.of(events.OptimizerStep):
                mine = inside & {parameter for parameter, _ in step.gradients}
                between = training.events_between(cast, step)
                if (
                    mine
                    and between
                    and not _is_widened(training, between, mine)
                    and not _is_one_of_several(mine, step.optimizer)
                ):
                    yield cast.spot, _in_half(step)
                    break

    yield from certain(trainings, find, where_reached=True)


_MASTERS = re.compile(
    r"master|(fp|float)32.*(param|weight|cop|group|model)|(param|weight|cop|group|model).*(fp|float)32|full_precision|"
    "lora|adapter|deepspeed|apex|accelerat",
    re.IGNORECASE,
)
"""What code is called that keeps float32 weights, or trains a part of the model: not numpy.float32 of its images."""


def _is_widened(training: Training, between: list[events.Event], parameters: set[Parameter]) -> bool:
    """Whether something BETWEEN makes some of PARAMETERS float32 again."""
    casts = [each for each in between if isinstance(each, events.Move) and each.format in ("float32", "bfloat16")]
    return any(parameters.intersection(_inside(training, each.module)) for each in casts)


def _inside(training: Training, model: Object) -> set[Parameter]:
    """The parameters of MODEL, and those of its parts that the program names."""
    parts = (model, *model.state.get("parts", {}).values())
    return {parameter for each in parts for parameter in training.executor.parameters(each)}


def _is_one_of_several(parameters: set[Parameter], optimizer: Object) -> bool:
    """Whether PARAMETERS are of one of several models that are given along with OPTIMIZER, which may be none's of them:
    a teacher stands beside its student.
    """
    return bool(optimizer.state.get("is_given")) and any(
        each.owner is not None and each.owner.state.get("has_siblings") for each in parameters
    )


def _in_half(step: events.OptimizerStep) -> str:
    made = step.optimizer.spot
    line = made.line if made is not None else step.spot.line
    if step.scaler is not None:
        return (
            f"the optimizer in line {line} trains these float16 weights, and the scaler refuses their gradients: "
            "ValueError: Attempting to unscale FP16 gradients"
        )
    return (
        f"the optimizer in line {line} updates these weights in float16, where a change below 1/4096 of a weight is "
        "lost and Adam's eps of 1e-8 is 0"
    )


@detector("source/eps-vanishes")
def eps_vanishes(trainings: Trainings) -> Iterator[Sighting]:
    """A small constant guards a float16 value against 0, and is 0 itself in float16."""

    def find(training: Training) -> Facts:
        for small in training.of(events.SmallConstant):
            yield small.spot, _vanishes(small.value)
        for call in training.of(events.FunctionCall):
            first = call.arguments[0] if call.arguments else None
            eps = call.keywords.get("eps", call.arguments[3] if len(call.arguments) > 3 else _DEFAULTS.get(call.name))
            is_half = isinstance(first, Tensor) and first.format == "float16" and not call.region.is_on
            if is_half and call.name in _DEFAULTS and isinstance(eps, float) and 0 < eps <= _SMALLEST:
                yield call.spot, _vanishes(eps)

    yield from certain(trainings, find, where_reached=True)


_DEFAULTS = {"normalize": 1e-12, "cosine_similarity": 1e-8}
"""The eps of functions that divide by a norm."""
_SMALLEST = 2.0**-25


def _vanishes(eps: float) -> str:
    return f"{eps:g} is 0 in float16, whose smallest number is 6e-8: what it guards against gives infinity or NaN"


@detector("source/unstable-composition")
def unstable_composition(trainings: Trainings) -> Iterator[Sighting]:
    """Two operations are composed that overflow, or give log(0), where one combined operation does not."""

    def find(training: Training) -> Facts:
        for call in training.of(events.Composed):
            yield from compositions(training, call)

    yield from certain(trainings, find, where_reached=True)
