"""What an execution of the program shows about clipping: where it stands between the backward pass and the step."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Parameter
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import External
from torchtriage.specialists.debugging_techniques.rules.mends import move_after, move_before


@detector("source/clip-after-step")
def clip_after_step(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients are clipped when the optimizer has stepped with them already, or before there are any."""

    def find(training: Training) -> Facts:
        yield from _clipped_too_early(training)
        step: events.OptimizerStep | None = None
        is_clipped, is_step_clipped = False, False  # a second clip, in an evaluation, comes too late for nothing
        for clip in training.executor.events:
            if isinstance(clip, events.OptimizerStep):
                step, is_step_clipped, is_clipped = clip, is_clipped, False
            if not isinstance(clip, events.Clip) or step is None or is_measured(clip):
                is_clipped |= isinstance(clip, events.Clip)
                continue
            is_clipped = True
            used = [each for each in clip.gradients if each.used == len(each.by) > 0]
            if used and len(used) == len(clip.gradients) and not is_step_clipped:
                fact = f"the step of {step.spot} has used these gradients already, unclipped"
                mend = move_before("clip-first", step.spot)
                yield (clip.spot, fact, mend) if step.scaler is None else (clip.spot, fact)

    yield from certain(trainings, find, where_reached=True)


def _clipped_too_early(training: Training) -> Facts:
    """Where gradients are clipped that were just cleared, and the backward pass comes behind, with nothing but the step
    after it.
    """
    if "backward" in training.blind:
        return
    for clip in training.of(events.Clip):
        mine = set(clip.parameters)
        if not mine or is_measured(clip) or not _has_just_cleared(training, clip, mine):
            continue
        later = [each for each in training.events_after(clip) if each.loops == clip.loops]
        backward = next((each for each in later if isinstance(each, events.Backward) and mine & each.loss.graph), None)
        behind = later[later.index(backward) :] if backward is not None else []
        steps = (place for place, each in enumerate(behind) if isinstance(each, events.OptimizerStep))
        first = next(steps, None)
        if backward is None or first is None or any(isinstance(each, events.Clip) for each in behind[:first]):
            continue
        fact = f"no gradient is there yet: {backward.spot} computes them afterwards, and the step takes them unclipped"
        yield clip.spot, fact, move_after("clip-first", backward.spot)


def _has_just_cleared(training: Training, clip: events.Clip, parameters: set[Parameter]) -> bool:
    """Whether the gradients of PARAMETERS were cleared before CLIP, and no backward pass was in between."""
    for each in reversed(training.events_before(clip)):
        if isinstance(each, events.ZeroGrad) and parameters <= {*each.parameters}:
            return True
        if isinstance(each, events.Backward) and (parameters & each.loss.graph or each.loss.is_open):
            return False
    return False


def is_measured(clip: events.Clip) -> bool:
    """Whether CLIP only measures the norm: no gradient has the one that is allowed."""
    limit = clip.limit
    is_huge = isinstance(limit, int | float) and limit >= HUGE
    return is_huge or (isinstance(limit, External) and limit.name.endswith((".inf", ".Inf")))


HUGE = 1e6
"""Norms that are clipped to are 0.1 to 100 in public recipes."""
