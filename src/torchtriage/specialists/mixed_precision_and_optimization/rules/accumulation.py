"""What the source alone shows about gradients that are added up over several batches before a step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.mixed_precision_and_optimization.rules.cadence import Cadence, cadence, is_conditional
from torchtriage.specialists.mixed_precision_and_optimization.rules.formats import behind
from torchtriage.specialists.mixed_precision_and_optimization.rules.reduced import may_be_sum
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaled import (
    UNSCALERS,
    of_scaler,
    propagations,
    scaler_steps,
    unrelated,
)

_DIVIDES = symbols().divisions | {"mean_over", "normalize_loss"}
_FACTORS = re.compile("acc|inv|scale|norm|factor|ratio|coef|micro|num|count|weight")


@detector("source/scaler-touched-mid-accumulation")
def scaler_touched_mid_accumulation(step: TrainingStep) -> Iterator[Sighting]:
    """The scaler is updated, or unscales, on batches that only add to the gradients."""
    if not any(each.scaler is not None for each in propagations(step)) or step.handed_over("scaler"):
        return
    found = cadence(step)
    if found is None or step.script.aside & {"get_scale", "_scale"} or any(step.calls("get_scale")):
        return
    stepping = {dotted(call.receiver) for _, call in scaler_steps(step)}
    for tail in ("unscale_", "update"):
        for event, call in of_scaler(step, tail):
            if dotted(call.receiver) in stepping and _is_mid(step, found, event):
                yield step.script.seen(call.node, _touched(step, found, tail))


def _is_mid(step: TrainingStep, found: Cadence, event: Event) -> bool:
    """Whether EVENT runs with every batch that is added, and not only when a step is made."""
    if found.until is not None:
        return event.order <= found.until and not _is_sometimes(step, event)
    if found.arm is not None:
        return found.arm not in event.path and not _is_sometimes(step, event) and not _leaves_before(step, event)
    loops = [block for block in propagations(step)[0].event.path if block.kind == "loop"]
    return loops[-1] in event.path and not any(b.kind == "arm" for b in event.path[event.path.index(loops[-1]) :])


def _is_sometimes(step: TrainingStep, event: Event) -> bool:
    """Whether EVENT runs in some turns only: under a condition of what the turns change, unlike `if args.clip:`."""
    if not is_conditional(step, event):
        return False
    inside = event.path[event.path.index(step.ring.block) + 1 :] if step.ring.block in event.path else event.path
    tests = [block.owner.test for block in inside if block.kind == "arm" and isinstance(block.owner, ast.If)]
    if len(tests) < sum(block.kind in ("arm", "loop", "handler") for block in inside):
        return True
    changed = {e.fact.name for e in step.events if isinstance(e.fact, Store)}
    parts = [node for test in tests for node in ast.walk(test)]
    return any(isinstance(node, ast.Call) or dotted(node) in changed for node in parts)


def _leaves_before(step: TrainingStep, event: Event) -> bool:
    """Whether the turn may have ended before EVENT: `continue` in the batches that do not step."""
    return any(
        not reaches(each.event, event) or any(b.leaves == "loop" for b in each.event.path)
        for each in propagations(step)
    )


def _touched(step: TrainingStep, found: Cadence, tail: str) -> str:
    often = (
        f"with every batch, and the step is made every {step.script.source(found.every)} of them (line {found.line})"
    )
    if tail == "update":
        return (
            f"update() runs {often}: without an unscale_ it raises AssertionError (No inf checks were recorded), with "
            "one the batches added so far are divided again"
        )
    return f"unscale_ runs {often}: what is added afterwards is scaled while what is there is not, or the call raises"


@detector("source/loss-not-averaged-over-accumulation")
def loss_not_averaged_over_accumulation(step: TrainingStep) -> Iterator[Sighting]:
    """Gradients of several batches are added up, and the loss is not divided by their number."""
    found = cadence(step)
    if found is None or step.hidden or step.unseen_method() or _is_divided_elsewhere(step, found):
        return
    for backward in propagations(step):
        if backward.root is None or _is_divided(step, backward, found):
            return
    backward = propagations(step)[-1]
    every = step.script.source(found.every)
    yield step.script.seen(
        backward.call.node,
        f"the step in line {_stepping(step)} uses the sum of {every} batches' gradients: {every} times the gradient "
        "that the learning rate and any clipping are set for",
    )


def _stepping(step: TrainingStep) -> int:
    return next(call.node.lineno for _, call, _ in step.optimizing())


def _is_divided(step: TrainingStep, backward: Backward, found: Cadence) -> bool:
    """Whether something on the way to the loss divides it, weighs it, or may do so out of sight."""
    count = _word(found.every)
    values = [backward.root, *(e.fact.value for e in behind(step, backward) if isinstance(e.fact, Store))]
    augmented = (e.fact.node for e in behind(step, backward))
    if any(isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div | ast.Mult) for node in augmented):
        return True
    if may_be_sum(step, backward):
        return True
    return any(_divides(node, count) for value in values if value is not None for node in ast.walk(value))


def _divides(node: ast.AST, count: str) -> bool:
    match node:
        case ast.BinOp(op=ast.Div()):
            return True
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(
                _FACTORS.search(dotted(n).lower()) for side in (left, right) for n in ast.walk(side) if dotted(n)
            )
        case ast.Call(func=func, args=args, keywords=keywords):
            if dotted(func).rpartition(".")[2] in _DIVIDES or (
                isinstance(func, ast.Attribute) and func.attr in _DIVIDES
            ):
                return True
            if any(keyword.arg == "reduction" and _is_sum(keyword.value) for keyword in keywords):
                return True
            inside = [*args, *(keyword.value for keyword in keywords)]
            return any(_word(n) == count for each in inside for n in ast.walk(each) if isinstance(n, ast.expr))
    return False


def _is_sum(node: ast.expr) -> bool:
    """Whether a reduction is "sum": sums of several batches are the sum of one large batch."""
    return isinstance(node, ast.Constant) and node.value == "sum"


def _word(node: ast.expr) -> str:
    """The last word of a name; the number itself of a constant, which nothing else is compared with."""
    return dotted(node).rpartition(".")[2] or f"={ast.dump(node)}"


def _is_divided_elsewhere(step: TrainingStep, found: Cadence) -> bool:
    """Whether gradients or the learning rate are divided, or the scaler or a hook may do it."""
    if any(step.stores(".grad")) or any(step.stores(".grad[]")) or step.script.aside & UNSCALERS & {"_scale"}:
        return True
    grads = (call for _, call in step.calls("div_", "mul_", "_foreach_div_", "_foreach_mul_", "register_hook"))
    if any(True for _ in grads) or step.handed_over("optimizer") or _hands_loss(step):
        return True
    count = _word(found.every)
    others = unrelated(step)
    scopes = [scope for scope in step.script.facts.scopes if id(scope) not in others]
    values = [store.value for scope in scopes for stores in scope.stores.values() for store in stores if store.value]
    given = [argument for scope in scopes for call in scope.calls for argument in call.arguments]
    return any(_has_quotient(value, count) for value in (*values, *given))


def _hands_loss(step: TrainingStep) -> bool:
    """Whether a statement gives the loss to code that cannot be seen, which may propagate it in its own way."""
    roots = {dotted(each.root) for each in propagations(step) if each.root is not None} - {""}
    return any(
        isinstance(call.statement, ast.Assign) and not step.script.knows(call) and dotted(argument) in roots
        for event in step.events
        if (call := event.call) is not None
        for argument in call.arguments
    )


def _has_quotient(value: ast.expr, count: str) -> bool:
    """Whether VALUE divides by the number of batches; batches // count is the number of steps."""
    return any(
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div)
        and not _is_shown(node.left)
        and any(_word(n) == count for n in ast.walk(node.right) if isinstance(n, ast.expr))
        for node in ast.walk(value)
    )


def _is_shown(node: ast.expr) -> bool:
    """Whether NODE is a number for people: loss.item()."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


@detector("source/scheduler-on-skipped-step")
def scheduler_on_skipped_step(step: TrainingStep) -> Iterator[Sighting]:
    """A scheduler advances with every batch, also when the scaler has skipped the optimizer's step."""
    script = step.script
    steps = [(event, call) for event, call in scaler_steps(step) if call.node.args]
    if not steps or not step.ring.is_loop or any(step.calls("get_scale")):
        return
    for event, call in step.calls("step"):
        if not _is_per_step(step, call):
            continue
        before = [(each, other) for each, other in steps if reaches(each, event)]
        if before and not _asks(event.path, before[-1][0].path) and not script.aside & {"get_scale", "_scale"}:
            yield script.seen(
                call.node,
                f"scaler.step in line {before[-1][1].node.lineno} skips the optimizer when a gradient is not finite "
                "(the first steps of most float16 runs), and this scheduler advances all the same",
            )


def _is_per_step(step: TrainingStep, call: Call) -> bool:
    parts = [part for part in step.script.roles.parts(call.receiver, call.scope) if part.role == "scheduler"]
    return bool(parts) and not any(part.name.endswith("ReduceLROnPlateau") for part in parts)


def _asks(path: tuple[Block, ...], stepping: tuple[Block, ...]) -> bool:
    """Whether the scheduler stands under a condition of its own."""
    return any(block.kind == "arm" and block not in stepping for block in path)
