"""Gradients that are averaged over the ranks more often than they are used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.wrappers import kinds, wrappers

_HELD = frozenset({"no_sync", "require_backward_grad_sync", "set_requires_gradient_sync", "join", "register_comm_hook"})


@detector("source/no-sync-missing")
def no_sync_missing(step: TrainingStep) -> Iterator[Sighting]:
    """Gradients are accumulated, and yet averaged over the ranks after every micro-batch."""
    script = step.script
    wrapped = None if script.hidden or not wrappers(script) else next(_replicated(step), None)
    if wrapped is None:
        return
    for backward in step.backwards:
        stepping = _accumulated(step, backward)
        if stepping is not None and not _is_held(step):
            yield script.seen(
                backward.call.node,
                f"line {stepping.node.lineno} steps only once in several micro-batches, but the model that line "
                f"{wrapped.lineno} wraps averages its gradients over the ranks in each of them",
            )
            return


def _replicated(step: TrainingStep) -> Iterator[ast.Call]:
    for event in step.events:
        call = event.call
        if call is not None and isinstance(call.node.func, ast.Name | ast.Attribute):
            yield from (m for k, m in kinds(step.script, call.node.func, call.scope) if k == "replicated")


def _is_held(step: TrainingStep) -> bool:
    """Whether the file knows the switch, by call, attribute, string or a helper that has it in its name."""
    script = step.script
    if any("sync" in tail and not tail.startswith(("sync", "convert_sync")) for tail in script.facts.calls):
        return True
    stores = {name.rpartition(".")[2] for scope in script.facts.scopes for name in scope.stores}
    return bool(_HELD & (script.facts.calls.keys() | stores | script.aside))


def _accumulated(step: TrainingStep, backward: Backward) -> Call | None:
    """The optimizer step that only some turns of the loop come to, though each comes to BACKWARD."""
    if not step.ring.is_loop:
        return None
    found: list[Call] = []
    for event, call, _ in step.optimizing():
        arms = _counted(step, event)
        if not arms or any(arm in backward.event.path for arm in arms):
            return None
        found.append(call)
    return found[0] if found else None


def _counted(step: TrainingStep, event: Event) -> list[Block]:
    """The branches around EVENT, inside the loop, whose test counts turns: (i + 1) % n == 0."""
    inside = event.path[event.path.index(step.ring.block) :] if step.ring.block in event.path else event.path
    return [
        block
        for block in inside
        if isinstance(block.owner, ast.If) and block.kind == "arm" and _counts(step, block.owner.test)
    ]


def _counts(step: TrainingStep, test: ast.expr) -> bool:
    tests = [test]
    if isinstance(test, ast.Name):
        tests = [store.value for s in step.script.facts.scopes for store in s.stores.get(test.id, ()) if store.value]
    inside = (node for each in tests for node in ast.walk(each))
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in inside)
