"""Every how many batches a loop that adds up gradients makes its step."""

from __future__ import annotations

import ast
import re

from msgspec import Struct

from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Scope, Store, dotted
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.specialists.mixed_precision_and_optimization.rules.scaled import propagations

_OTHERS = re.compile("bptt|seq|horizon|rollout|unroll|trunc|task|episode|window|time|branch|head")


class Cadence(Struct, frozen=True):
    """Every how many batches a step is made.

    every: the expression of that number. arm: the statements that run only then; until: the last event before the
    `continue` of the other batches; None for both where an inner loop counts.
    """

    every: ast.expr
    line: int
    arm: Block | None = None
    until: int | None = None


def cadence(step: TrainingStep) -> Cadence | None:
    """The cadence of a loop that adds up gradients; None for one that steps in each turn, or clears in each."""
    steps = [event for event, _, _ in step.optimizing()]
    if not step.ring.is_loop or not steps or not propagations(step):
        return None
    found = _inner_loop(step, steps) or _by_arm(step, steps) or _by_continue(step, steps)
    return None if found is None or _is_of_others(found.every) else found


def _is_of_others(every: ast.expr) -> bool:
    """Whether what is counted are no batches: tasks, the time steps of truncated backpropagation, turns of a game."""
    counts = isinstance(every, ast.Call) and dotted(every.func) == "len"
    words = [dotted(each).lower() for each in ast.walk(every) if isinstance(each, ast.Name | ast.Attribute)]
    return counts or any(_OTHERS.search(word) for word in words)


def _by_arm(step: TrainingStep, steps: list[Event]) -> Cadence | None:
    """The cadence of `if (i + 1) % n == 0:` around the step."""
    found = [_arm(step, event) for event in steps]
    first = found[0]
    if first is None or any(each is not first for each in found):
        return None
    every = _modulus(step, first)
    if every is None or any(first in backward.event.path for backward in propagations(step)):
        return None
    if any(first not in event.path and not is_conditional(step, event) for event, _ in step.calls("zero_grad")):
        return None
    return Cadence(every, int(getattr(first.owner, "lineno", 0)), arm=first)


def _by_continue(step: TrainingStep, steps: list[Event]) -> Cadence | None:
    """The cadence of `if (i + 1) % n: continue` above the step."""
    body = getattr(step.ring.block.owner, "body", [])
    for leaving in body:
        if not isinstance(leaving, ast.If) or not isinstance(leaving.body[-1], ast.Continue) or leaving.orelse:
            continue
        inside = (inner for test in _meant(step, leaving.test) for inner in ast.walk(test))
        every = next((n for inner in inside if (n := _skipped(step, inner)) is not None), None)
        own = (event for event in step.events if event.fact.scope is step.ring.scope)
        before = [event.order for event in own if getattr(event.fact.node, "lineno", 0) <= leaving.lineno]
        until = max(before, default=-1)
        cleared = any(e.order <= until and not is_conditional(step, e) for e, _ in step.calls("zero_grad"))
        propagated = all(backward.event.order <= until for backward in propagations(step))
        if every is not None and propagated and not cleared and all(event.order > until for event in steps):
            return Cadence(every, leaving.lineno, until=until)
    return None


def _skipped(step: TrainingStep, node: ast.AST) -> ast.expr | None:
    """The n of `(i + 1) % n`, or of `count < n` where count starts again with each step."""
    match node:
        case ast.BinOp(op=ast.Mod(), right=every):
            return every
        case ast.Compare(left=counter, ops=[ast.Lt() | ast.NotEq()], comparators=[every]):
            counted = not isinstance(every, ast.Call) and _is_counter(step, dotted(counter), step.ring.block)
            return every if counted else None
    return None


def _inner_loop(step: TrainingStep, steps: list[Event]) -> Cadence | None:
    """The cadence of `for _ in range(accumulation_steps): … backward()` inside of the loop that steps."""
    blocks = [block for block in propagations(step)[0].event.path if block.kind == "loop"]
    inner = blocks[-1] if blocks else None
    if inner is None or inner is step.ring.block or any(inner in event.path for event in steps):
        return None
    match inner.owner:
        case ast.For(iter=ast.Call(func=ast.Name(id="range" | "trange"), args=[every])):
            named = dotted(every).rpartition(".")[2].lower()
            taken = any(inner in event.path and call.receiver is None for event, call in step.calls("next"))
            found = every if re.search("accum|micro|acc_steps|n_acc", named) or (named and taken) else None
        case ast.For(iter=ast.expr() as whole):
            named = dotted(whole).rpartition(".")[2].lower()
            found = whole if re.search("micro_?batch|chunk|sub_?batch", named) else _chunks(whole)
            found = found or _by_helper(step, whole)
        case _:
            found = None
    if found is None or any(inner in event.path for event, _ in step.calls("zero_grad")):
        return None
    return Cadence(found, int(getattr(inner.owner, "lineno", 0)))


def _chunks(whole: ast.expr) -> ast.expr | None:
    """The n of a loop over x.chunk(n), torch.chunk(x, n) or zip of such."""
    match whole:
        case ast.Call(func=ast.Name(id="zip" | "enumerate" | "tqdm"), args=[first, *_]):
            return _chunks(first)
        case ast.Call(func=ast.Name(id="map" | "starmap"), args=[_, first, *_]):
            return _chunks(first)
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="torch"), attr="chunk" | "tensor_split"), args=[_, every, *_]
        ):
            return every
        case ast.Call(func=ast.Attribute(attr="chunk" | "tensor_split"), args=[every, *_]):
            return every
    return None


def _by_helper(step: TrainingStep, whole: ast.expr) -> ast.expr | None:
    """The n that a function of this file is given and chunks a batch by: batch.micro(n), split(batch, n)."""
    call = next((each for e in step.events if (each := e.call) is not None and each.node is whole), None)
    helper = step.script.trace.definition(call.node.func, call.scope) if call is not None else None
    if call is None or helper is None or helper.kind != "function":
        return None
    words = [each.arg for each in helper.parameters]
    for value in (each.node.value for each in helper.returns):
        every = dotted(_chunks(value)) if value is not None else ""
        if every in words:
            return call.argument(every, words.index(every) - (helper.receiver in words[:1]))
    return None


def _arm(step: TrainingStep, event: Event) -> Block | None:
    """The outermost condition inside of the loop under which EVENT runs, when it counts the turns."""
    inside = _inside(step, event)
    return next((block for block in inside if block.kind == "arm" and _modulus(step, block) is not None), None)


def _inside(step: TrainingStep, event: Event) -> tuple[Block, ...]:
    block = step.ring.block
    return event.path[event.path.index(block) + 1 :] if block in event.path else event.path


def is_conditional(step: TrainingStep, event: Event) -> bool:
    return any(block.kind in ("arm", "loop", "handler") for block in _inside(step, event))


def _modulus(step: TrainingStep, block: Block) -> ast.expr | None:
    """The n of `if (i + 1) % n == 0:`, where BLOCK is what it guards; the test may have a name."""
    if not isinstance(block.owner, ast.If):
        return None
    values = [*_meant(step, block.owner.test), *_asked(step, block)]
    for node in (inner for value in values for inner in ast.walk(value)):
        match node:
            case ast.Compare(left=ast.BinOp(op=ast.Mod(), right=every), ops=[ast.Eq()]):
                return every if not isinstance(every, ast.Constant) or every.value != 1 else None
            case ast.UnaryOp(op=ast.Not(), operand=ast.BinOp(op=ast.Mod(), right=every)):
                return every
            case ast.Compare(left=counter, ops=[ast.Eq() | ast.GtE()], comparators=[every]):
                if _is_counter(step, dotted(counter), block) and not isinstance(every, ast.Call):
                    return every
    return None


def _meant(step: TrainingStep, test: ast.expr) -> list[ast.expr]:
    """TEST, and the comparisons that its names stand for."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    stores = [e.fact for e in step.events if isinstance(e.fact, Store) and e.fact.name in names and e.fact.value]
    return [
        test,
        *(store.value for store in stores if isinstance(store.value, ast.Compare | ast.BoolOp)),
        *_given(step, names),
    ]


def _asked(step: TrainingStep, block: Block) -> list[ast.expr]:
    """What the functions and properties of this file return that the condition of BLOCK asks: if self.is_due()."""
    script = step.script
    scope = next((each for each in script.facts.scopes if each.body is block.path[0]), None)
    test = block.owner.test if isinstance(block.owner, ast.If) else None
    found: list[Scope | None] = []
    for node in ast.walk(test) if test is not None and scope is not None else ():
        match node:
            case ast.Call(func=called) if scope is not None:
                found.append(script.trace.definition(called, scope))
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if scope is not None and name == scope.receiver:
                found.append(script.trace.method(scope.host, attr) if scope.host is not None else None)
    asked = [each for each in found if each is not None and each.kind == "function"]
    return [each.node.value for helper in asked for each in helper.returns if each.node.value is not None]


def _given(step: TrainingStep, names: set[str]) -> list[ast.expr]:
    """The comparisons that functions of the step are given as parameters with these NAMES: update=(i + 1) % n == 0."""
    scopes = {id(event.fact.scope): event.fact.scope for event in step.events}.values()
    given = (
        site.argument(name, words.index(name) - (scope.receiver in words[:1]))
        for scope in scopes
        if scope is not step.ring.scope and names & {*(words := [each.arg for each in scope.parameters])}
        for name in names & {*words}
        for site in step.script.trace.sites(scope)
    )
    return [each for each in given if isinstance(each, ast.Compare | ast.BoolOp)]


def _is_counter(step: TrainingStep, name: str, block: Block) -> bool:
    """Whether NAME counts the turns, and starts again in BLOCK: where the step is made, or in the whole turn."""
    stores = [e for e in step.events if isinstance(e.fact, Store) and name and e.fact.name == name]
    counted = any(
        isinstance(e.fact.node, ast.AugAssign)
        and isinstance(e.fact.node.op, ast.Add)
        and isinstance(e.fact.node.value, ast.Constant)
        and (block is step.ring.block or block not in e.path)
        for e in stores
    )
    again = (e.fact.value for e in stores if isinstance(e.fact, Store) and block in e.path)
    return counted and any(isinstance(value, ast.Constant) and value.value == 0 for value in again)
