"""What the source alone shows about gradients that are clipped while they are scaled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.flow import reaches, surely
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.specialists.mixed_precision_and_optimization.rules.clips import Clip, clips
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaled import (
    UNSCALERS,
    is_disabled,
    is_elsewhere,
    is_overridden,
    propagations,
    scaler_steps,
)
from torchtriage.specialists.mixed_precision_and_optimization.rules.trained import bound


@detector("source/clip-before-unscale")
def clip_before_unscale(step: TrainingStep) -> Iterator[Sighting]:
    """Gradients are clipped after a scaled backward, with no unscale_ before."""
    script = step.script
    if any(step.calls("get_scale")) or step.handed_over("scaler"):  # unscaled by hand, or out of sight
        return
    if is_overridden(step, *UNSCALERS):
        return
    for backward in propagations(step):
        if backward.scaler is None or is_disabled(step, backward):
            continue
        for clip in clips(step):
            if _is_scaled(step, backward, clip.event) and not script.aside & UNSCALERS:
                yield script.seen(
                    clip.node,
                    f"the gradients of line {backward.call.node.lineno} are still multiplied by the loss scale here "
                    "(65536 at first), so what is left after clipping is that much too small",
                    edits=_edit(step, backward, clip),
                )


def _is_scaled(step: TrainingStep, backward: Backward, clip: Event) -> bool:
    """Whether the gradients of BACKWARD come to CLIP as they are: neither unscaled nor used up by then."""
    if not reaches(backward.event, clip) or _is_unscaled(step, backward, clip):
        return False
    if is_elsewhere(step, backward, clip) or _is_overtaken(step, backward, clip):
        return False
    return not any(reaches(backward.event, event) and reaches(event, clip) for event, _ in scaler_steps(step))


def _is_unscaled(step: TrainingStep, backward: Backward, clip: Event) -> bool:
    """Whether an unscale_ between the two may be for what is clipped: not before the backward, nor of other models."""
    return any(
        reaches(event, clip) and (event.order > backward.event.order or _may_be_carried(step, event, backward))
        and not _is_for_others(step, call, clip)
        for event, call in step.calls("unscale_")
    )  # fmt: skip


def _may_be_carried(step: TrainingStep, unscaling: Event, backward: Backward) -> bool:
    """Whether what was unscaled before BACKWARD may be clipped after it: nothing has stepped with it."""
    return not any(reaches(unscaling, event) and reaches(event, backward.event) for event, _ in step.calls("step"))


def _is_for_others(step: TrainingStep, unscaling: Call, clip: Event) -> bool:
    """Whether the optimizer that is unscaled surely has none of the parameters that are clipped, and another has."""
    script, call = step.script, clip.call
    parameters = call.argument("parameters", 0) if call is not None else None
    if call is None or parameters is None:
        return False
    clipped = bound(script, parameters, call.scope)
    theirs = [
        _trained(script, [part]) for part in script.roles.parts(unscaling.argument("optimizer", 0), unscaling.scope)
    ]
    trained = {model for _, _, parts in step.optimizing() for model in _trained(script, parts)}
    return bool(clipped and theirs) and all(each and not each & clipped for each in theirs) and clipped <= trained


def _trained(script: Script, parts: Iterable[Part]) -> set[tuple[int, int]]:
    """The models that optimizers of this file train."""
    made = [(part.made, part.scope) for part in parts if part.role == "optimizer"]
    return {
        model for call, scope in made if call is not None and scope is not None for model in bound(script, call, scope)
    }


def _is_overtaken(step: TrainingStep, backward: Backward, clip: Event) -> bool:
    """Whether an unscaled backward in between may be what the clip is for: a GAN that scales one network only."""
    return any(
        other.scaler is None and reaches(backward.event, other.event) and reaches(other.event, clip)
        for other in propagations(step)
    )


def _edit(step: TrainingStep, backward: Backward, clip: Clip) -> tuple[Edit, ...]:
    """Safe only where nothing unscales already, and the clip runs exactly once for each step of one optimizer."""
    call = clip.call
    if call is None:
        return ()
    scaler = dotted(backward.scaler)
    steps = [(event, each) for event, each in step.calls("step") if dotted(each.receiver) == scaler]
    if not scaler or len(steps) != 1 or any(step.calls("unscale_")) or not surely(backward.event, clip.event):
        return ()
    event, stepping = steps[0]
    optimizer = dotted(stepping.argument("optimizer", 0))
    alike = (
        event.path == clip.event.path
        and reaches(clip.event, event)
        and stepping.scope is call.scope is backward.call.scope
    )
    if not alike or not optimizer:
        return ()
    return step.script.insertion("unscale-first", call.statement, f"{scaler}.unscale_({optimizer})")
