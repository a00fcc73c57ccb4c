"""A loop that belongs to a framework, and a step of it that is made past the framework."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Return, Scope, dotted
from torchtriage.examine.source.script import Script


@detector("source/framework-bypassed")
def framework_bypassed(script: Script) -> Iterator[Sighting]:
    """backward() is called past the framework that has to call it."""
    owner = script.names.framework()
    if owner == "Accelerate":
        yield from _past_accelerate(script)
    elif owner == "Lightning":
        yield from _twice(script)


def _past_accelerate(script: Script) -> Iterator[Sighting]:
    """Of one Accelerator that scales or accumulates, as its construction says in so many words."""
    made = list(script.named("accelerate.Accelerator", "accelerate.accelerator.Accelerator"))
    plain = [call for call in script.calls("backward") if not call.arguments and isinstance(call.receiver, ast.Name)]
    if len(made) != 1 or not any(script.calls("prepare")) or len(plain) != sum(1 for _ in script.calls("backward")):
        return
    harm = _harm(made[0])
    name = _named(made[0])
    for call in plain if harm and name else ():
        loss = dotted(call.receiver)
        edits: tuple[Edit, ...] = ()
        if call.scope.receiver == "" and "." not in name and script.names.home(name, call.scope) is not None:
            edits = script.replaced("through-the-framework", call.node, f"{name}.backward({loss})")
        yield script.seen(call.node, f"{harm}; {loss}.backward() goes past {name}.backward({loss})", edits)


def _harm(made: Call) -> str:
    precision, steps = made.argument("mixed_precision"), made.argument("gradient_accumulation_steps")
    if isinstance(precision, ast.Constant) and precision.value == "fp16":
        return "mixed_precision='fp16' scales the loss in backward(): without it the first step() fails"
    count = steps.value if isinstance(steps, ast.Constant) and isinstance(steps.value, int) else 1
    if count > 1:
        return (
            f"gradient_accumulation_steps={count} divides the loss in backward(): gradients are {count} times as large"
        )
    return ""


def _named(made: Call) -> str:
    """What the Accelerator is called, where it has one plain name."""
    match made.statement:
        case ast.Assign(targets=[target], value=value) if value is made.node:
            return dotted(target)
    return ""


def _twice(script: Script) -> Iterator[Sighting]:
    """A training_step that propagates the loss itself and returns it to Lightning, which propagates it again."""
    if "automatic_optimization" in script.aside or any(script.calls("manual_backward")):
        return
    for scope in script.facts.scopes:
        is_step = scope.kind == "function" and scope.name == "training_step" and scope.parent is scope.host
        if not is_step or scope.host is None or not _is_module(script, scope.host):
            continue
        for call in scope.calls:
            loss = dotted(call.receiver) if call.tail == "backward" and not call.arguments else ""
            if loss and any(_gives(each, loss) for each in scope.returns):
                fact = f"Lightning calls backward() on what training_step returns: the graph of {loss} is freed by then"
                yield script.seen(call.node, f"{fact} (RuntimeError)")


def _is_module(script: Script, host: Scope) -> bool:
    return any(base.endswith(".LightningModule") for base in script.trace.bases(host))


def _gives(back: Return, loss: str) -> bool:
    """Whether BACK returns LOSS itself, or a dictionary with it under "loss"."""
    match back.node.value:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return any(isinstance(k, ast.Constant) and k.value == "loss" and dotted(v) == loss for k, v in pairs)
        case ast.expr() as value:
            return dotted(value) == loss
    return False
