"""Gradients that are averaged over the ranks more often than they are used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.wrappers import kinds

_HELD = frozenset({"no_sync", "require_backward_grad_sync", "set_requires_gradient_sync", "join", "register_comm_hook"})


@detector("source/no-sync-missing")
def no_sync_missing(step: TrainingStep) -> Iterator[Sighting]:
    """Gradients are accumulated, and yet averaged over the ranks after every micro-batch."""
    script = step.script
    wrapped = None if script.hidden or not step.backwards else next(_replicated(step), None)
    if wrapped is None:
        return
    held = _is_held(step)
    for backward in step.backwards:
        late = _held_late(step, backward) if held else None
        if late is not None:
            yield script.seen(
                backward.call.node,
                f"no_sync of line {late.lineno} holds backward only, but the forward before it has already "
                "decided to average: every micro-batch is averaged all the same",
            )
            return
        stepping = None if held else _accumulated(step, backward)
        if stepping is not None:
            yield script.seen(
                backward.call.node,
                f"line {stepping.node.lineno} steps only once in several micro-batches, but the model that line "
                f"{wrapped.lineno} wraps averages its gradients over the ranks in each of them",
            )
            return


def _replicated(step: TrainingStep) -> Iterator[ast.expr]:
    for event in step.events:
        call = event.call
        if call is not None and isinstance(call.node.func, ast.Name | ast.Attribute):
            yield from (m for k, m in kinds(step.script, call.node.func, call.scope) if k == "replicated")


def _is_replicated(step: TrainingStep, call: Call) -> bool:
    return any(kind == "replicated" for kind, _ in kinds(step.script, call.node.func, call.scope))


def _is_held(step: TrainingStep) -> bool:
    """Whether the file knows the switch, by call, attribute, string or a helper that has it in its name."""
    script = step.script
    if any("sync" in tail and not tail.startswith(("sync", "convert_sync")) for tail in script.facts.calls):
        return True
    stores = {name.rpartition(".")[2] for scope in script.facts.scopes for name in scope.stores}
    return bool(_HELD & (script.facts.calls.keys() | stores | script.aside))


def _held_late(step: TrainingStep, backward: Backward) -> ast.With | None:
    """The no_sync() block around BACKWARD when the forward passes all stand before it."""
    forwards = [
        event
        for event in step.events
        if event.call is not None and _is_replicated(step, event.call) and reaches(event, backward.event)
    ]
    for block in backward.event.path:
        if not isinstance(block.owner, ast.With) or any(block in event.path for event in forwards):
            continue
        for item in block.owner.items:
            ends = step.script.trace.origins(item.context_expr, backward.call.scope)
            if forwards and any(each.call is not None and _is_no_sync(each.call) for each in ends):
                return block.owner
    return None


def _is_no_sync(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "no_sync"


def _accumulated(step: TrainingStep, backward: Backward) -> Call | None:
    """The optimizer step that comes only after several turns of the loop that BACKWARD runs in."""
    if not step.ring.is_loop:
        return None
    found = [(event, call) for event, call, _ in step.optimizing()]
    inner = _micro_loop(step, backward)
    if inner is not None:
        return found[0][1] if found and not any(inner in event.path for event, _ in found) else None
    for event, call in found:
        arms = _counted(step, event)
        if any(arm in backward.event.path for arm in arms) or not (arms or _is_skipped(step, backward, call)):
            return None
    return found[0][1] if found else None


def _micro_loop(step: TrainingStep, backward: Backward) -> Block | None:
    """A loop over parts of the batch, inside the step, that goes forward and backward."""
    path = backward.event.path
    inside = path[path.index(step.ring.block) + 1 :] if step.ring.block in path else ()
    for block in inside:
        forwards = (e for e in step.events if e.call is not None and _is_replicated(step, e.call) and block in e.path)
        if block.kind == "loop" and next(forwards, None) is not None:
            return block
    return None


def _is_skipped(step: TrainingStep, backward: Backward, stepping: Call) -> bool:
    """Whether a test that counts turns goes on with the next one between backward and step."""
    body = step.ring.block.owner
    for each in body.body if isinstance(body, ast.For | ast.While) else ():
        if isinstance(each, ast.If) and isinstance(each.body[-1], ast.Continue) and not each.orelse:
            between = backward.call.node.lineno < each.lineno < stepping.node.lineno
            if between and stepping.scope is backward.call.scope and _counts(step, each.test):
                return True
    return False


def _counted(step: TrainingStep, event: Event) -> list[Block]:
    """The branches around EVENT, inside the loop, whose test counts turns: (i + 1) % n == 0."""
    inside = event.path[event.path.index(step.ring.block) :] if step.ring.block in event.path else event.path
    return [
        block
        for block in inside
        if isinstance(block.owner, ast.If) and block.kind == "arm" and _counts(step, block.owner.test)
    ]


def _counts(step: TrainingStep, test: ast.expr) -> bool:
    """Whether TEST counts turns: by a remainder, or by a counter that starts anew."""
    flags = {dotted(node) for node in ast.walk(test) if isinstance(node, ast.Name | ast.Attribute)} - {""}
    tests = [
        test,
        *(
            store.value
            for s in step.script.facts.scopes
            for flag in flags
            for store in s.stores.get(flag, ())
            if store.value is not None and isinstance(store.value, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.BinOp)
        ),
    ]
    for each in ast.walk(test):
        own = step.script.trace.definition(each.func, step.ring.scope) if isinstance(each, ast.Call) else None
        tests += [end.node.value for end in own.returns if end.node.value is not None] if own is not None else []
    inside = [node for each in tests for node in ast.walk(each)]
    if any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in inside):
        return True
    names = {dotted(node) for node in inside if isinstance(node, ast.Name | ast.Attribute)}
    return isinstance(test, ast.Compare) and any(_starts_anew(step, name) for name in names)


def _starts_anew(step: TrainingStep, name: str) -> bool:
    """Whether the step adds to the counter NAME and sets it back to 0."""
    stores = [event.fact for event in step.events if isinstance(event.fact, Store) and event.fact.name == name]
    zero = (s.value for s in stores if s.how == "assign")
    back = any(isinstance(value, ast.Constant) and value.value == 0 for value in zero)
    return back and any(store.how == "augment" for store in stores)
