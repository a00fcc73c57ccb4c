"""What the rules ask of a step whose loss is scaled: who scales, who steps, and which conditions go together."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, dotted
from torchtriage.examine.source.flow import shared
from torchtriage.examine.source.steps import Backward, TrainingStep

# Read off the scaler and not called: unscale_ under a name of its own, or the factor for division by hand.
UNSCALERS = frozenset({"unscale_", "get_scale", "_scale"})


def scaler_steps(step: TrainingStep) -> Iterator[tuple[Event, Call]]:
    """The calls of scaler.step(optimizer)."""
    yield from of_scaler(step, "step")


def of_scaler(step: TrainingStep, tail: str) -> Iterator[tuple[Event, Call]]:
    """The calls of that method of a scaler."""
    for event, call in step.calls(tail):
        if call.receiver is not None and step.script.roles.plays(call.receiver, call.scope, "scaler"):
            yield event, call


def plain_steps(step: TrainingStep) -> Iterator[tuple[Event, Call]]:
    """The calls of optimizer.step(), past any scaler."""
    for event, call, _ in step.optimizing():
        if not step.script.roles.plays(call.receiver, call.scope, "scaler"):
            yield event, call


def is_elsewhere(step: TrainingStep, backward: Backward, spot: Event) -> bool:
    """Whether the two may never run in one step: `if fp16: …` around the one, `if not fp16: …` around the other.

    What the scaler is enabled by counts as a condition of the backward.
    """
    common = shared(backward.event, spot)
    inside = tests(spot.path[common:])
    if {*words([*tests(backward.event.path[common:]), *enabled(step, backward)])} & {*words(inside)}:
        return True
    return any(isinstance(node, ast.Not) for test in inside for node in ast.walk(test))


def tests(path: Iterable[Block]) -> list[ast.expr]:
    """The conditions under which PATH is taken, either way."""
    return [block.owner.test for block in path if isinstance(block.owner, ast.If)]


def words(conditions: Iterable[ast.expr]) -> Iterator[str]:
    """The last words of the names in CONDITIONS: a flag may be args.fp16 here and self.fp16 there."""
    for test in conditions:
        inside = list(ast.walk(test))
        parts = {id(node.value) for node in inside if isinstance(node, ast.Attribute)}
        yield from (dotted(node).rpartition(".")[2] for node in inside if dotted(node) and id(node) not in parts)


def is_disabled(step: TrainingStep, backward: Backward) -> bool:
    """Whether the scaler is made with enabled=False."""
    return any(isinstance(each, ast.Constant) and each.value is False for each in enabled(step, backward))


def enabled(step: TrainingStep, backward: Backward) -> list[ast.expr]:
    """What the scaler is given as enabled=."""
    made = step.script.roles.made(backward.scaler, backward.call.scope, "scaler")
    return [keyword.value for part in made if part.made for keyword in part.made.keywords if keyword.arg == "enabled"]
