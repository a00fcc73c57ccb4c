"""What the rules ask of a step whose loss is scaled: who scales, who steps, and which conditions go together."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.flow import shared
from torchtriage.examine.source.steps import Backward, TrainingStep

# Read off the scaler and not called: unscale_ under a name of its own, or the factor for division by hand.
UNSCALERS = frozenset({"unscale_", "get_scale", "_scale"})


def propagations(step: TrainingStep) -> list[Backward]:
    """The backwards of the step, without calls of a function of this file that calls backward itself."""
    return [each for each in step.backwards if not _is_wrapper(step, each)]


def _is_wrapper(step: TrainingStep, backward: Backward) -> bool:
    helper = step.script.trace.definition(backward.call.node.func, backward.call.scope)
    return helper is not None and any(call.tail == "backward" for call in helper.calls)


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


def unrelated(step: TrainingStep) -> set[int]:
    """The scopes (their ids) that belong to other trainings: functions and classes with a backward of their own."""
    own = {id(scope) for event in step.events for scope in _family(event.fact.scope)}
    own |= {id(scope) for each in (step.ring, *step.around) for scope in _family(each.scope)}
    own |= {id(scope) for site in step.sites for scope in _family(site.scope)}
    others = {id(scope) for call in step.script.calls("backward") for scope in _family(call.scope)}
    hosts = {id(scope.host) for scope in step.script.facts.scopes if id(scope) in others and scope.host is not None}
    others |= {id(scope) for scope in step.script.facts.scopes if scope.host is not None and id(scope.host) in hosts}
    mine = {id(scope.host) for scope in step.script.facts.scopes if id(scope) in own and scope.host is not None}
    own |= {id(scope) for scope in step.script.facts.scopes if scope.host is not None and id(scope.host) in mine}
    return others - own - {id(step.script.facts.scopes[0])}


def _family(scope: Scope) -> Iterator[Scope]:
    """SCOPE and the functions around it."""
    inside: Scope | None = scope
    while inside is not None and inside.kind in ("function", "lambda"):
        yield inside
        inside = inside.parent


def is_overridden(step: TrainingStep, *tails: str) -> bool:
    """Whether a method that the step does not show calls one of TAILS, under the name of one that it runs.

    Which of the two a training runs, only the class of its object says.
    """
    hidden = [call.scope for call in step.script.calls(*tails) if call.scope.host is not None]
    shown = {id(event.fact.scope) for event in step.events} if hidden else set()
    calls = [call for event in step.events if hidden and (call := event.call) is not None and call.scope.host]
    are_joined = step.script.written.overrides.are_joined
    return any(
        id(scope) not in shown and call.tail == scope.name and are_joined(scope.host, call.scope.host)
        for scope in hidden
        for call in calls
        if scope.host is not None and call.scope.host is not None
    )


def is_disabled(step: TrainingStep, backward: Backward) -> bool:
    """Whether the scaler is made with enabled=False."""
    return any(isinstance(each, ast.Constant) and each.value is False for each in enabled(step, backward))


def enabled(step: TrainingStep, backward: Backward) -> list[ast.expr]:
    """What the scaler is given as enabled=."""
    made = step.script.roles.made(backward.scaler, backward.call.scope, "scaler")
    return [keyword.value for part in made if part.made for keyword in part.made.keywords if keyword.arg == "enabled"]
