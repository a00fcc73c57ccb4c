"""Schedulers that are saved before their step of the epoch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, Scope, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.script import Script
from torchtriage.specialists.checkpointing_and_reproducibility.rules.places import parts_of


def is_within(event: Event, loop: Block) -> bool:
    """Whether the event stands in a further loop, or in what follows a loop or a try: then it is no end of an epoch."""
    inside = event.path[event.path.index(loop) + 1 :] if loop in event.path else ()
    return any(block.kind in ("loop", "rest") for block in inside)


def late_scheduler(
    script: Script, events: tuple[Event, ...], turn: tuple[Block, str], saved: list[Event]
) -> Iterator[Sighting]:
    """A scheduler that steps after its state was saved, in an epoch that a resume does not run again."""
    stepped = [event for event in events if event.call is not None and _scheduler(script, event.call, "step")]
    known = {id(event.call): _scheduler(script, event.call, "step") for event in stepped if event.call is not None}
    which = {name for names in known.values() for name in names}
    elsewhere = [call for call in script.calls("step") if id(call) not in known]
    if not stepped or any(which & _scheduler(script, call, "step") for call in elsewhere):
        return
    if not any(which & _scheduler(script, call, "load_state_dict") for call in script.calls("load_state_dict")):
        return
    if any(is_within(each, turn[0]) or _is_told_the_turn(each, turn[1]) for each in stepped):
        return
    held = [each for each in saved if each.call is not None and which & _schedulers_in(script, each.call)]
    if not held or not all(reaches(save, step) for save in held for step in stepped):
        return  # one of them is written in time, and may be the one to resume from
    line = stepped[0].call.node.lineno if stepped[0].call is not None else 0
    yield script.seen(
        held[0].fact.node,
        f"the scheduler is saved here before its step in line {line}, which a resume never makes up for: its rate "
        "stays one epoch behind",
    )


def _scheduler(script: Script, call: Call, tail: str) -> frozenset[object]:
    """What tells the scheduler apart whose method TAIL is called: where it is made, else what it is called."""
    return _identity(script, call.receiver, call.scope) if call.tail == tail else frozenset()


def _identity(script: Script, node: ast.expr | None, scope: Scope) -> frozenset[object]:
    parts = [part for part in script.roles.parts(node, scope) if part.role == "scheduler"]
    return frozenset(dotted(node) if part.made is None else id(part.made) for part in parts)


def _is_told_the_turn(step: Event, turn: str) -> bool:
    given = step.call.arguments if step.call is not None else []
    return any(
        isinstance(inner, ast.Name | ast.Attribute) and dotted(inner) == turn
        for each in given
        for inner in ast.walk(each)
    )


def _schedulers_in(script: Script, save: Call) -> frozenset[object]:
    """The schedulers whose state the saved dictionary holds."""
    found: frozenset[object] = frozenset()
    for _, value, scope in parts_of(script, save.argument("obj", 0), save.scope):
        match value:
            case ast.Call(func=ast.Attribute(value=inner, attr="state_dict")):
                found |= _identity(script, inner, scope)
    return found
