"""What the source alone shows about steps that go past the scaler, and backwards that it never scaled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.flow import reaches, shared, surely
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaled import (
    UNSCALERS,
    enabled,
    is_disabled,
    is_elsewhere,
    is_overridden,
    of_scaler,
    plain_steps,
    propagations,
    scaler_steps,
    tests,
    words,
)
from torchtriage.specialists.mixed_precision_and_optimization.rules.trained import bound
from torchtriage.specialists.mixed_precision_and_optimization.rules.unscaling import unskipped

# Words of a condition under which there is a scaler at all.
_SWITCH = re.compile("amp|fp16|half|scaler|mixed|precision|cuda")


@detector("source/scaler-bypassed")
def scaler_bypassed(step: TrainingStep) -> Iterator[Sighting]:
    """The loss is scaled and the optimizer steps past the scaler, or the other way round."""
    scaled = [each for each in propagations(step) if each.scaler is not None and not is_disabled(step, each)]
    if not scaled and not any(scaler_steps(step)):
        return
    if step.script.aside & UNSCALERS or any(step.calls("get_scale")) or step.handed_over("scaler"):
        return
    if is_overridden(step, "scale", *UNSCALERS):
        return
    for event, call in plain_steps(step) if scaled else ():
        backward = _last(step, event)
        if backward is not None and backward.scaler is None:
            backward = _beside(step, backward, event) or backward
        if backward in scaled and _meets(step, backward, event, call):
            yield step.script.seen(
                call.node,
                f"the gradients of line {backward.call.node.lineno} are still multiplied by the loss scale (65536 at "
                "first) when the optimizer uses them here; scaler.step would divide them and skip infinities",
                _edit(step, backward, event, call),
            )
    yield from unskipped(step)
    yield from _unscaled(step)


def _last(step: TrainingStep, spot: Event, plain: bool = False) -> Backward | None:
    """The last backward whose gradients SPOT may meet as they are: nothing has unscaled or used them by then.

    plain: only of those that no scaler has multiplied.
    """
    users = [event for event, call in step.calls("step") if event is not spot and not _is_apart(step, call, spot.call)]
    found = None
    for backward in propagations(step):
        if not reaches(backward.event, spot) or (plain and backward.scaler is not None):
            continue
        taken = any(reaches(backward.event, user) and reaches(user, spot) for user in users)
        found = None if taken else backward
    return found


def _beside(step: TrainingStep, backward: Backward, spot: Event) -> Backward | None:
    """The scaled backward in the other arm of the plain BACKWARD's condition, where no scaler steps at all."""
    if any(scaler_steps(step)):
        return None
    others = (each for each in propagations(step) if each.scaler is not None and reaches(each.event, spot))
    return next((each for each in others if _is_other_arm(each.event, backward.event)), None)


def _is_apart(step: TrainingStep, one: Call, other: Call | None) -> bool:
    """Whether the two calls surely step optimizers of different models."""
    mine, theirs = (_models(step, call) if call is not None else set() for call in (one, other))
    return bool(mine and theirs) and not mine & theirs


def _models(step: TrainingStep, call: Call) -> set[tuple[int, int]]:
    """The models that the optimizer of a step call is made with."""
    roles = step.script.roles
    scales = roles.plays(call.receiver, call.scope, "scaler")
    target = call.argument("optimizer", 0) if scales else call.receiver
    made = [(part.made, part.scope) for part in roles.made(target, call.scope, "optimizer")]
    return {each for node, scope in made if node and scope for each in bound(step.script, node, scope)}


def _meets(step: TrainingStep, backward: Backward, event: Event, call: Call) -> bool:
    """Whether the plain step CALL surely meets gradients of BACKWARD that are scaled."""
    if _is_unscaled(step, backward, event) or is_elsewhere(step, backward, event):
        return False
    plain = (each.event for each in propagations(step) if each.scaler is None and reaches(each.event, event))
    if any(not _is_other_arm(backward.event, each) for each in plain):  # may be what it is for
        return _last(step, event, plain=True) is None
    kinds = {part.by for part in step.script.roles.parts(call.receiver, call.scope) if part.role == "optimizer"}
    if "unknown" in kinds and step.hidden:  # an optimizer of a framework may unscale by itself
        return False
    return not any(_is_other_arm(event, other) for other, _ in scaler_steps(step))


def _is_unscaled(step: TrainingStep, backward: Backward, event: Event) -> bool:
    """Whether an unscale_ comes before EVENT, always or under conditions that go with the scaler or with EVENT."""
    for unscaling, _ in step.calls("unscale_"):
        if not reaches(unscaling, event):
            continue
        conditions = {*words(tests(unscaling.path[shared(unscaling, event) :]))}
        flags = {*words(_flags(event)), *words(enabled(step, backward))}
        if surely(unscaling, event) or conditions & flags or any(_SWITCH.search(word.lower()) for word in conditions):
            return True
    return False


def _is_other_arm(one: Event, other: Event) -> bool:
    """Whether the two stand in two arms of one condition."""
    common = shared(one, other)
    here, there = one.path[common:], other.path[common:]
    return bool(here and there) and here[0].kind == there[0].kind == "arm" and here[0].owner is there[0].owner


def _edit(step: TrainingStep, backward: Backward, event: Event, call: Call) -> tuple[Edit, ...]:
    """Only where update() follows on the same way, so that the step is whole afterwards."""
    scaler, optimizer = dotted(backward.scaler), dotted(call.receiver)
    updates = [each for each, other in of_scaler(step, "update") if dotted(other.receiver) == scaler]
    whole = any(each.path == event.path and reaches(event, each) for each in updates)
    if not whole or not scaler or not optimizer or call.arguments or call.scope is not backward.call.scope:
        return ()
    if call.node.lineno != call.node.end_lineno:
        return ()
    return step.script.replaced("step-through-the-scaler", call.node, f"{scaler}.step({optimizer})")


def _unscaled(step: TrainingStep) -> Iterator[Sighting]:
    """Backwards without a scale whose gradients a scaler then divides."""
    seen = set()
    for alone in _only_add(step) if not step.unseen_method() else ():
        seen.add(id(alone.call))
        yield from (step.script.seen(alone.call.node, _undivided(call)) for _, call in [*scaler_steps(step)][:1])
    for event, call in scaler_steps(step):
        backward = _last(step, event)
        if backward is None or backward.scaler is not None or id(backward.call) in seen or not call.node.args:
            continue
        added = _is_added(step, backward, event)
        if (not added and _may_be_scaled(step, backward, event, call)) or step.unseen_method():
            continue
        seen.add(id(backward.call))
        yield step.script.seen(backward.call.node, _undivided(call))


def _undivided(stepping: Call) -> str:
    return (
        f"nothing multiplies this loss by the loss scale, and scaler.step in line {stepping.node.lineno} divides its "
        "gradients by it (65536 at first)"
    )


def _only_add(step: TrainingStep) -> Iterator[Backward]:
    """Plain backwards of the batches between two steps, `if (i + 1) % n: … continue`, beside scaled ones."""
    if any(plain_steps(step)) or not any(each.scaler is not None for each in propagations(step)):
        return
    for backward in propagations(step):
        if backward.scaler is not None or backward.root is None or any(map(_is_opaque, ast.walk(backward.root))):
            continue
        asked = [node for test in _flags(backward.event) for node in ast.walk(test)]
        between = any(isinstance(node, ast.Mod) for node in asked)
        used = any(reaches(backward.event, event) for event, _ in step.calls("step", "zero_grad"))
        if between and not used and not any(_SWITCH.search(word.lower()) for word in words(_flags(backward.event))):
            yield backward


def _is_added(step: TrainingStep, backward: Backward, stepping: Event) -> bool:
    """Whether BACKWARD surely adds to gradients that are scaled, in a step that nothing but the scaler makes."""
    if backward.root is None or any(map(_is_opaque, ast.walk(backward.root))) or any(plain_steps(step)):
        return False
    if any(reaches(event, stepping) and event.order < backward.event.order for event, _ in step.calls("unscale_")):
        return False
    roots = {dotted(each.root) for each in propagations(step) if each.scaler is not None}
    values = [store.value for store in step.script.names.stores(dotted(backward.root), backward.call.scope)]
    if dotted(backward.root) in roots or any(isinstance(v, ast.Call) and "scale" in dotted(v.func) for v in values):
        return False
    used = [event for event, _ in step.calls("step")]
    return any(
        each.scaler is not None
        and surely(each.event, backward.event)
        and not enabled(step, each)
        and not any(reaches(each.event, event) and reaches(event, backward.event) for event in used)
        for each in propagations(step)
    )


def _may_be_scaled(step: TrainingStep, backward: Backward, event: Event, call: Call) -> bool:
    """Whether the gradients may be scaled after all, or the scaler off, or the two on different ways."""
    made = step.script.roles.made(call.receiver, call.scope, "scaler")
    if any(keyword.arg == "enabled" for part in made if part.made for keyword in part.made.keywords):
        return True
    if backward.root is None or any(map(_is_opaque, ast.walk(backward.root))):
        return True
    common = shared(backward.event, event)
    ours = [block for block in backward.event.path[common:] if block.kind in ("arm", "handler")]
    if ours or any(_is_other_arm(backward.event, other.event) for other in propagations(step)):
        return True
    if {*words(_flags(event))} & {*words(_flags(backward.event))}:
        return True
    scales = [each for each, other in step.calls("scale") if other.node.args]
    used = [each for each, _ in step.calls("step") if each is not event]
    return any(
        reaches(scale, event) and not any(reaches(scale, use) and reaches(use, event) for use in used)
        for scale in scales
    )


def _is_opaque(node: ast.AST) -> bool:
    """Whether NODE is a call of anything but loss.mean() and loss.sum()."""
    if not isinstance(node, ast.Call):
        return False
    return not (isinstance(node.func, ast.Attribute) and node.func.attr in ("mean", "sum"))


def _flags(event: Event) -> list[ast.expr]:
    return [block.owner.test for block in event.path if isinstance(block.owner, ast.If)]
