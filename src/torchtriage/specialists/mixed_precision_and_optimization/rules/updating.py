"""What the source alone shows about scalers that are not told that a step has ended."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaled import of_scaler, scaler_steps
from torchtriage.specialists.mixed_precision_and_optimization.rules.unscaling import twice


@detector("source/scaler-not-updated")
def scaler_not_updated(step: TrainingStep) -> Iterator[Sighting]:
    """The scaler steps in a loop that never calls its update(), or unscales twice in one turn."""
    steps = [call for _, call in scaler_steps(step) if call.node.args]
    if not steps or step.handed_over("scaler") or step.unseen_method():
        return
    yield from twice(step)
    if not step.ring.is_loop or step.ring.runs_once or step.hidden:
        return
    for call in {id(each.node): each for each in reversed(steps)}.values():
        updated = any(_may_be_one(step, call, other) for _, other in of_scaler(step, "update"))
        if updated or _is_off(step, call) or not _is_same_each_turn(step, call) or _updates_elsewhere(step, call):
            continue
        yield step.script.seen(
            call.node,
            "the loop in line "
            f"{getattr(step.ring.block.owner, 'lineno', 0)} never calls {dotted(call.receiver) or 'scaler'}.update(): "
            "the second step of the same optimizer raises RuntimeError",
        )
        return


def _is_off(step: TrainingStep, call: Call) -> bool:
    """Whether the scaler is made with enabled=False."""
    made = [part.made for part in step.script.roles.made(call.receiver, call.scope, "scaler") if part.made is not None]
    values = [keyword.value for each in made for keyword in each.keywords if keyword.arg == "enabled"]
    return any(isinstance(each, ast.Constant) and each.value is False for each in values)


def _may_be_one(step: TrainingStep, one: Call, other: Call) -> bool:
    """Whether the scalers of two calls may be the same one: not when both are known and made apart."""
    roles = step.script.roles
    mine, theirs = (
        {id(part.made) for part in roles.made(each.receiver, each.scope, "scaler")} for each in (one, other)
    )
    return not mine or not theirs or bool(mine & theirs)


def _is_same_each_turn(step: TrainingStep, call: Call) -> bool:
    """Whether the loop steps one and the same optimizer with one and the same scaler in each turn."""
    for node in (call.receiver, call.argument("optimizer", 0)):
        name = dotted(node).partition(".")[0]
        if not name:
            return False
        stores = step.script.names.stores(name, call.scope)
        if any(step.ring.block in store.path for store in stores):
            return False
    return True


def _updates_elsewhere(step: TrainingStep, call: Call) -> bool:
    """Whether code that the loop does not show may update the same scaler: a callback, another method."""
    last = dotted(call.receiver).rpartition(".")[2]
    around = {id(each.scope) for each in (step.ring, *step.around)}
    known = bool(step.script.roles.made(call.receiver, call.scope, "scaler"))
    for other in step.script.calls("update"):
        if id(other.scope) in around or dotted(other.receiver).rpartition(".")[2] != last or _steps_itself(other):
            continue
        theirs = bool(step.script.roles.made(other.receiver, other.scope, "scaler"))
        if not known or (theirs and _may_be_one(step, call, other)) or (not theirs and _is_related(step, call, other)):
            return True
    return any(
        dotted(store.value).endswith(f"{last}.update") for stores in call.scope.stores.values() for store in stores
    )


def _steps_itself(update: Call) -> bool:
    """Whether the function of UPDATE steps the same scaler: a training step of its own, and no part of another."""
    return any(each.tail == "step" and dotted(each.receiver) == dotted(update.receiver) for each in update.scope.calls)


def _is_related(step: TrainingStep, one: Call, other: Call) -> bool:
    """Whether x.scaler here may be the y.scaler there: not when they are attributes of two unrelated classes."""
    if "." not in dotted(one.receiver) or "." not in dotted(other.receiver):
        return False
    mine, theirs = one.scope.host, other.scope.host
    if mine is None or theirs is None:
        return True
    return mine in step.script.trace.lineage(theirs) or theirs in step.script.trace.lineage(mine)
