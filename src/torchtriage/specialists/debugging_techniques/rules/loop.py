"""What the source alone shows about training loops that run and do not learn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.specialists.debugging_techniques.rules.likeness import apart, given, is_run_around, stepped


@detector("source/gradients-not-zeroed")
def gradients_not_zeroed(step: TrainingStep) -> Iterator[Sighting]:
    """A loop calls backward and steps, and nothing in it clears the gradients."""
    if not step.ring.is_loop or step.ring.runs_once or step.hidden:
        return
    if step.handed_over("optimizer") or step.unseen_method():
        return
    if _clears(step):
        yield from _left_out(step)
        return
    kinds = {part.by for _, _, parts in step.optimizing() for part in parts}
    if not kinds or "unknown" in kinds or _is_made_inside(step):
        return
    last = step.backwards[-1].call if step.backwards else None
    if last is not None and not _clears_aside(step.script) and not _may_clear(step):
        yield step.script.seen(
            last.node,
            f"the loop in line {_line(step)} adds each batch's gradients to those of all batches before: "
            f"it never calls zero_grad(){_elsewhere(step)}",
        )


def _left_out(step: TrainingStep) -> Iterator[Sighting]:
    """An optimizer that steps and is never cleared, beside others that are."""
    script = step.script
    zeros = [call for _, call in step.calls("zero_grad")]
    clearing = [call for call in _calls(step) if _says_zero(call.tail) or _overwrites(call)]
    if {call.tail for call in clearing} - {"zero_grad"} or any(step.stores(".grad")) or any(step.stores(".grad[]")):
        return
    if not zeros or _clears_aside(script) or _may_clear(step):
        return
    seen: set[int] = set()
    for event, call, parts in step.optimizing():
        target = stepped(script, call)
        alone = len(parts) == 1 and parts[0].made is not None and id(target) not in seen
        seen.add(id(target))
        if not alone or not all(_is_apart(script, zero, call, parts[0]) for zero in zeros):
            continue
        before = [each.call for each in step.backwards if reaches(each.event, event)]
        if before:
            yield script.seen(
                before[-1].node,
                f"{script.source(target) if target else 'the optimizer'} steps in line {call.node.lineno}, and nothing "
                f"clears its gradients: the loop in line {_line(step)} adds them up over all batches",
            )


def _is_apart(script: Script, zero: Call, call: Call, part: Part) -> bool:
    """Whether ZERO surely leaves alone the gradients that the step CALL of the optimizer PART applies."""
    target, receiver = stepped(script, call), zero.receiver
    if part.made is None or part.scope is None:
        return False
    modules = given(script, part.made, part.scope)
    if script.roles.plays(receiver, zero.scope, "optimizer"):
        other = script.roles.parts(receiver, zero.scope)
        theirs = [each for o in other if o.made and o.scope for each in given(script, o.made, o.scope)]
        shared = {dotted(each) for each in modules} & {dotted(each) for each in theirs}
        by_key = all(each.made is part.made for each in other)  # one line makes them all: they differ by their keys
        return apart(script, receiver, zero.scope, target, call.scope) and bool(theirs) and (by_key or not shared)
    return bool(modules) and all(_is_other(script, receiver, zero.scope, each, part.scope) for each in modules)


def _is_other(script: Script, one: ast.expr | None, here: Scope, other: ast.expr, there: Scope) -> bool:
    """Whether the model ONE surely is not OTHER, nor holds it: what makes them mentions the other nowhere."""
    mine = [(origin.call, origin.scope) for origin in script.trace.origins(one, here)]
    its = [(origin.call, origin.scope) for origin in script.trace.origins(other, there)]
    if not mine or not its or any(call is None for call, _ in (*mine, *its)):
        return False
    names = {dotted(other), dotted(one)} - {""}
    if any(a.startswith(f"{b}.") for a in names for b in names) or len(names) < 2:
        return False
    inside = {dotted(node) for call, _ in mine if call is not None for each in call.args for node in ast.walk(each)}
    return not inside & names and not {id(call) for call, _ in mine} & {id(call) for call, _ in its}


def _clears(step: TrainingStep) -> bool:
    """Whether something sets gradients to zero or None; distributed autograd keeps them in a context of its own."""
    if any(_says_zero(call.tail) for call in _calls(step)):
        return True
    if any(step.stores(".grad")) or any(step.stores(".grad[]")) or any(_overwrites(call) for call in _calls(step)):
        return True
    return any(step.named({"torch.distributed.autograd.backward"}))


def _says_zero(tail: str) -> bool:
    return tail in ("zero", "zero_", "_foreach_zero_") or ("grad" in tail and any(w in tail for w in _EMPTY))


def _overwrites(call: Call) -> bool:
    """parameter.grad.data.fill_(0), parameter.grad.mul_(0.0), setattr(parameter, "grad", None)."""
    if call.tail == "setattr":
        return any(isinstance(each, ast.Constant) and each.value == "grad" for each in call.arguments)
    return call.tail in ("fill_", "mul_", "copy_") and "grad" in dotted(call.receiver).split(".")


def _clears_aside(script: Script) -> bool:
    """Whether the file clears gradients where no loop shows it: in a lambda, in forward, or under another name."""
    if "zero_grad" in script.aside:
        return True
    return any(
        (_says_zero(call.tail) and "grad" in f"{dotted(call.receiver)}.{call.tail}")
        for scope in script.facts.scopes
        if scope.kind == "lambda" or scope.name in ("forward", "__call__", "__enter__", "__exit__")
        for call in scope.calls
    )


def _may_clear(step: TrainingStep) -> bool:
    """Whether the optimizer or the model is given to code that may clear the gradients unseen, in each turn."""
    if any(_is_handed(step, call) for scope in _around(step) for call in scope.calls):
        return True
    made = [part.made for _, _, parts in step.optimizing() for part in parts if part.made is not None]
    if any(step.script.shows(each, "optimizer") for each in made) or _is_decorated(step):
        return True
    return is_run_around(step) or _is_given_model(step)


def _around(step: TrainingStep) -> list[Scope]:
    return [step.ring.scope, *(site.scope for site in step.sites)]


def _is_handed(step: TrainingStep, call: Call) -> bool:
    """Whether CALL gives an optimizer to code that cannot be seen; a scheduler's constructor is none."""
    plays = step.script.roles.plays
    return not step.script.knows(call) and any(plays(each, call.scope, "optimizer") for each in call.arguments)


def _is_given_model(step: TrainingStep) -> bool:
    """fresh(model), as a statement of its own: it is called for what it does to the model."""
    script = step.script
    return any(
        isinstance(call.statement, ast.Expr) and call.statement.value is call.node and not script.knows(call)
        for call in _calls(step)
        if any(script.roles.plays(each, call.scope, "model") for each in call.arguments)
    )


def _is_decorated(step: TrainingStep) -> bool:
    """Whether a function that the step calls is wrapped by something that is not torch's."""
    inside = {
        id(event.fact.scope): event.fact.scope for event in step.events if event.fact.scope is not step.ring.scope
    }
    return any(
        not step.script.names.resolve(each.func if isinstance(each, ast.Call) else each, scope).startswith(_WRAPPERS)
        for scope in inside.values()
        if isinstance(scope.node, ast.FunctionDef)
        for each in scope.node.decorator_list
    )


_WRAPPERS = ("torch.", "builtins.", "functools.", "typing.")
_EMPTY = ("zero", "clear", "reset")


def _calls(step: TrainingStep) -> Iterator[Call]:
    yield from (event.fact for event in step.events if isinstance(event.fact, Call))


def _is_made_inside(step: TrainingStep) -> bool:
    """An optimizer that is built anew in each turn works on parameters that may be new, too."""
    inside = {id(inner) for inner in ast.walk(step.ring.block.owner)}
    if any(id(part.made) in inside for _, _, parts in step.optimizing() for part in parts if part.made):
        return True
    built = (event.fact for event in step.events if isinstance(event.fact, Store))
    names = {store.name for store in built if store.how == "assign" and isinstance(store.value, ast.Call)}
    return any(dotted(call.receiver) in names for _, call, _ in step.optimizing())


def _line(step: TrainingStep) -> int:
    return int(getattr(step.ring.block.owner, "lineno", 0))


def _elsewhere(step: TrainingStep) -> str:
    around = [step.ring.scope, *(site.scope for site in step.sites)]
    for call in step.script.calls("zero_grad"):
        if call.scope in around:
            return f" (line {call.node.lineno} does, outside of it)"
    return ""
