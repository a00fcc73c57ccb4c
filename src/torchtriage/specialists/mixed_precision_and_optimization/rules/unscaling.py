"""What the source alone shows about unscale_: called twice, or before a step that ignores what it found."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call
from torchtriage.examine.source.flow import reaches, shared, surely
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaled import (
    of_scaler,
    plain_steps,
    propagations,
    scaler_steps,
)
from torchtriage.specialists.mixed_precision_and_optimization.rules.trained import is_same

# What asks whether gradients are finite, by which a step of one's own may be left out.
_FINITE = symbols().finite_checks | {"get_scale"}


def unskipped(step: TrainingStep) -> Iterator[Sighting]:
    """The optimizer's own steps on gradients that the scaler has unscaled: none is skipped for infinities."""
    script = step.script
    if any(scaler_steps(step)) or any(script.calls(*_FINITE)) or any("found_inf" in word for word in script.aside):
        return
    if not any(each.scaler is not None for each in propagations(step)) or step.hidden:
        return
    for event, call in plain_steps(step):
        found = [
            (each, other) for each, other in of_scaler(step, "unscale_") if _is_used(step, each, other, event, call)
        ]
        if found:
            yield script.seen(
                call.node,
                f"unscale_ in line {found[-1][1].node.lineno} notes infinities and NaN for scaler.step, which skips "
                "the step then; this step writes them into the weights",
            )


def _is_used(step: TrainingStep, unscaling: Event, other: Call, event: Event, call: Call) -> bool:
    """Whether EVENT always steps the optimizer that was unscaled, and nothing checks the gradients on the way."""
    if call.arguments or not surely(unscaling, event) or not _is_met(unscaling, event):
        return False
    return is_same(step.script, other.argument("optimizer", 0), other, call.receiver, call)


def twice(step: TrainingStep) -> Iterator[Sighting]:
    """A second unscale_ of the same optimizer, with no update() in between."""
    found: list[tuple[Event, Call]] = []
    updates = [event for event, _ in of_scaler(step, "update")]
    for event, call in of_scaler(step, "unscale_"):
        for first, earlier in found:
            between = any(reaches(first, each) and reaches(each, event) for each in updates)
            if not between and _is_met(first, event) and _is_same(step, earlier, call):
                yield step.script.seen(
                    call.node,
                    f"line {earlier.node.lineno} has already unscaled this optimizer's gradients since the last "
                    "update(): this call raises RuntimeError",
                )
                break
        found.append((event, call))


def _is_met(first: Event, event: Event) -> bool:
    """Whether what has gone through FIRST always comes to EVENT, or the other way round."""
    here = event.path[shared(first, event) :]
    free = all(block.kind not in ("arm", "loop", "handler", "try") for block in here)
    return reaches(first, event) and (surely(first, event) or free)


def _is_same(step: TrainingStep, one: Call, other: Call) -> bool:
    """Whether the two calls are two places that unscale one optimizer."""
    mine, theirs = (each.argument("optimizer", 0) for each in (one, other))
    if one.node is other.node or not is_same(step.script, mine, one, theirs, other):
        return False
    return is_same(step.script, one.receiver, one, other.receiver, other)
