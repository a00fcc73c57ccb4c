"""What the source alone shows about gradients that no optimizer applies."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, dotted
from torchtriage.examine.source.flow import reaches, surely
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.likeness import (
    apart,
    given,
    is_run_around,
    is_strange,
    measures,
    optimizers,
    stepped,
    targets,
)

# By these an update is written out by hand.
_IN_PLACE = symbols().updates


@detector("source/step-missing")
def step_missing(step: TrainingStep) -> Iterator[Sighting]:
    """A loop computes gradients for an optimizer that never steps."""
    script = step.script
    if not step.repeats or step.ring.runs_once or step.hidden or not step.backwards or is_run_around(step):
        return
    dropped = [] if step.unseen_method() or _is_by_hand(step) else list(_dropped(step))
    yield from dropped
    if dropped:
        return
    idle = [part for part in optimizers(script) if not _is_stepped(script, part)]
    if not idle or not _all_steps_are_known(script) or step.unseen_method() or _is_by_hand(step):
        return
    for part in idle:
        cleared = _cleared(step, part)
        if part.made is None or not (cleared or _is_beside(step, part)) or _escapes(script, part):
            continue
        last = cleared or step.backwards[-1].call
        after = next((each.call for each in step.backwards if each.call.order > last.order), step.backwards[-1].call)
        yield script.seen(
            after.node,
            f"the loop in line {_line(step)} computes gradients for the optimizer of line {part.made.lineno}, and "
            "nothing in this file ever calls its step(): the weights stay as they are",
        )


# gradients that no step can use before they are cleared


def _dropped(step: TrainingStep) -> Iterator[Sighting]:
    """The backward calls whose gradients are cleared in every turn, with no step of that optimizer on their way."""
    script = step.script
    steps = [each for each in step.calls("step") if not _is_schedule(script, each[1])]
    if "grad" in script.aside or any(
        _is_elsewhere(step, event.call) for event in step.events if event.call is not None
    ):
        return
    seen: set[int] = set()
    zeros = [
        each for each in step.calls("zero_grad") if script.roles.plays(each[1].receiver, each[1].scope, "optimizer")
    ]
    for zero, call in zeros:
        for backward in _cleared_by(step, zero):
            for part in script.roles.parts(call.receiver, call.scope) if id(backward) not in seen else ():
                own = [event for event, each in steps if not _is_of_another(script, each, call, part)]
                if id(backward) in seen or any(_may_use(backward.event, event, zero) for event in own):
                    continue
                seen.add(id(backward))
                whose = f" of line {part.made.lineno}" if part.made is not None else ""
                yield script.seen(
                    backward.call.node,
                    f"no step() of the optimizer{whose} comes after this, and zero_grad() in line {call.node.lineno} "
                    "clears these gradients: they change no weight",
                )


def _is_schedule(script: Script, call: Call) -> bool:
    """Whether CALL steps a schedule, or is a function of this file, which is written out where it is called."""
    if script.trace.definition(call.node.func, call.scope) is not None:
        return True
    parts = script.roles.parts(call.receiver, call.scope)
    return bool(parts) and all(part.role == "scheduler" for part in parts)


def _is_elsewhere(step: TrainingStep, call: Call) -> bool:
    """Whether CALL may step an optimizer or use gradients out of sight."""
    script = step.script
    if call.tail in _IN_PLACE or call.tail == "grad":
        return True
    if "step" in call.tail.lower() and call.tail != "step":
        schedule = "sched" in dotted(call.node.func).lower()
        return not schedule and script.trace.definition(call.node.func, call.scope) is None and not script.name(call)
    return is_strange(script, call) or _is_saved_for_later(script, call)


def _is_saved_for_later(script: Script, call: Call) -> bool:
    """Whether an optimizer is given to a function whose own calls nobody follows: closures.append(optimizer)."""
    known = script.knows(call)
    return not known and any(script.roles.plays(each, call.scope, "optimizer") for each in call.arguments)


def _cleared_by(step: TrainingStep, zero: Event) -> list[Backward]:
    """The first backward after ZERO in each branch, or else the last one before it."""
    after = [each for each in step.backwards if reaches(zero, each.event)]
    before = [each for each in step.backwards if reaches(each.event, zero)]
    first = [each for each in after if not any(reaches(one.event, each.event) for one in after)]
    return first or before[-1:]


def _is_of_another(script: Script, stepping: Call, zero: Call, part: Part) -> bool:
    target = stepped(script, stepping)
    parts = script.roles.parts(target, stepping.scope)
    known = part.made is not None and bool(parts) and all(each.made is not None for each in parts)
    if known and all(each.made is not part.made for each in parts):
        return True
    return apart(script, target, stepping.scope, zero.receiver, zero.scope)


def _may_use(backward: Event, stepping: Event, zero: Event) -> bool:
    """Whether STEPPING applies what BACKWARD computes: later in the same turn, or in the next before it is cleared."""
    if reaches(backward, stepping):
        return True
    return stepping.order < backward.order and not surely(zero, stepping)


def _is_stepped(script: Script, part: Part) -> bool:
    return any(
        each.made is part.made
        for call in script.calls("step")
        for target in (call.receiver, *call.arguments)
        for each in script.roles.parts(target, call.scope)
    )


def _is_by_hand(step: TrainingStep) -> bool:
    """Whether the file changes weights itself, steps by a method it only looks up, measures, or lets others step."""
    script = step.script
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(step.ring.block.owner)):
        return True
    if any(step.calls(*_IN_PLACE)) or any(_is_measured(call) for _, call in step.calls("clip_grad_norm_")):
        return True
    if any(_is_step(each) for call in script.calls("getattr") for each in call.arguments):
        return True
    inside = list(ast.walk(script.facts.scopes[0].node))
    called = {id(node.func) for node in inside if isinstance(node, ast.Call)}
    if any(isinstance(node, ast.Attribute) and node.attr == "step" and id(node) not in called for node in inside):
        return True
    return any(
        store.name.endswith((".data", ".data[]")) or _is_of_gradient(store.value)
        for scope in script.facts.scopes
        for stores in scope.stores.values()
        for store in stores
        if store.how in ("assign", "augment")
    )


def _is_measured(call: Call) -> bool:
    """Whether CALL is there for the norm of the gradients: that is used, and the bound changes none of them."""
    used = not isinstance(call.statement, ast.Expr) or call.statement.value is not call.node
    return used and measures(call)


def _is_step(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "step"


def _is_of_gradient(value: ast.expr | None) -> bool:
    """An update by hand is arithmetic on a gradient: w - lr * w.grad."""
    inside = ast.walk(value) if isinstance(value, ast.BinOp) else ()
    return any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in inside)


def _all_steps_are_known(script: Script) -> bool:
    """Whether every step in this file is one of an optimizer made here, or of a schedule."""
    for tail, calls in script.facts.calls.items():
        if "step" not in tail.lower():
            continue
        for call in calls:
            if script.name(call) or script.trace.definition(call.node.func, call.scope) is not None:
                continue
            parts = script.roles.parts(call.receiver, call.scope) if tail == "step" else []
            scaled = script.roles.plays(call.receiver, call.scope, "scaler")
            target = script.roles.parts(call.argument("optimizer", 0), call.scope) if scaled else parts
            if not target or any(part.made is None and part.role != "scheduler" for part in target):
                return False
    return True


def _cleared(step: TrainingStep, part: Part) -> Call | None:
    """The call in the loop that clears the gradients of this optimizer, and of no other."""
    for _, call in step.calls("zero_grad"):
        parts = step.script.roles.parts(call.receiver, call.scope)
        if len(parts) == 1 and parts[0].made is part.made:
            return call
    return None


def _is_beside(step: TrainingStep, part: Part) -> bool:
    """Whether the optimizer was made for this loop: in the same function, for a model that the loop calls."""
    if part.scope is None or part.scope is not step.ring.scope or part.made is None:
        return False
    called = {
        dotted(event.call.node.func) for event in step.events if event.call is not None and event.call.receiver is None
    }
    return any(dotted(each) in called for each in given(step.script, part.made, part.scope))


def _escapes(script: Script, part: Part) -> bool:
    """Whether the optimizer, or the object that keeps it, is given to code that may step it."""
    if part.made is None or part.scope is None or script.shows(part.made, "optimizer"):
        return True
    names = [dotted(target) for target in targets(part.scope, part.made)]
    if not names or any(name.count(".") > 1 for name in names):
        return True
    host = part.scope.host
    if any("." in name for name in names) and (host is None or not script.trace.is_whole(host)):
        return True
    return _is_put_away(script, part)


def _is_put_away(script: Script, part: Part) -> bool:
    """Whether it is put into a list, a dict or another object, where it may be stepped under another name."""
    plain = (ast.Name, ast.Attribute)
    for scope in script.facts.scopes:
        for stores in scope.stores.values():
            for store in stores:
                inside = ast.walk(store.value) if isinstance(store.value, ast.List | ast.Dict | ast.Tuple) else ()
                for node in inside:
                    if isinstance(node, plain) and any(p.made is part.made for p in script.roles.parts(node, scope)):
                        return True
    return any(is_strange(script, call) for call in script.calls("append", "add", "update", "setdefault"))


def _line(step: TrainingStep) -> int:
    return int(getattr(step.ring.block.owner, "lineno", 0))
