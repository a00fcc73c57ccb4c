"""What the source alone shows about how a profiler is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Store, dotted
from torchtriage.examine.source.script import Script

_PROFILE = "torch.profiler.profile"
_OWN = frozenset({"key_averages", "export_chrome_trace", "export_stacks", "start", "stop", "events", "add_metadata"})
_RENAMED = {
    "cuda_time_total": "device_time_total",
    "self_cuda_time_total": "self_device_time_total",
    "cuda_memory_usage": "device_memory_usage",
    "self_cuda_memory_usage": "self_device_memory_usage",
}


@detector("source/profiler-without-step")
def profiler_without_step(script: Script) -> Iterator[Sighting]:
    """A profiler has a schedule, and nothing calls its step(): it stays in the first phase of the schedule."""
    for call in script.named(_PROFILE):
        given = call.argument("schedule", 1)
        if given is None or (isinstance(given, ast.Constant) and given.value is None):
            continue
        stores = _stores(call)
        if stores and not any(_may_step(script, store) for store in stores):
            name = stores[0].name
            yield script.seen(
                call.node, f"{name} has a schedule, and nothing calls {name}.step(): it stays in its first phase"
            )


def _stores(call: Call) -> list[Store]:
    """The names that hold the profiler of CALL, when it is held by names only."""
    found = [each for each in call.scope.actions if isinstance(each, Store) and each.value is call.node]
    return found if all(each.how in ("assign", "enter") and "[" not in each.name for each in found) else []


def _may_step(script: Script, store: Store) -> bool:
    """Whether the profiler that STORE holds is stepped in this file, or handed to something that may do so.

    One that a with statement has closed is given back to be read, not to be stepped.
    """
    if "step" in script.aside:  # hook=prof.step
        return True
    for scope in script.facts.scopes:
        for action in scope.actions:
            if isinstance(action, Call) and _is_used(action, store):
                return True
            renamed = isinstance(action, Store) and action.how == "assign" and action is not store
            if renamed and isinstance(action, Store) and _is_named(action.value, store):
                return True
        if store.how != "enter" and any(_is_named(each.node.value, store) for each in scope.returns):
            return True
    return False


def _is_used(call: Call, store: Store) -> bool:
    """By a method that is none of those that only open, close or read it, or as an argument."""
    own = call.receiver is not None and _is_named(call.receiver, store) and call.tail not in _OWN
    return own or any(_is_named(each, store) for each in call.arguments)


def _is_named(node: ast.expr | None, store: Store) -> bool:
    """Whether NODE is the profiler, or holds it; of an attribute whatever it is an attribute of."""
    match node:
        case ast.Starred(value=value):
            return _is_named(value, store)
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return any(_is_named(each, store) for each in parts)
        case ast.Attribute(attr=attr) if "." in store.name:
            return attr == store.name.rpartition(".")[2]
    return dotted(node) == store.name


@detector("source/profiler-api-removed")
def profiler_api_removed(script: Script) -> Iterator[Sighting]:
    """A figure of a profiler's event is read by a name that torch 2.13 no longer has."""
    if not any(tail in script.facts.calls for tail in ("key_averages", "events", "profile")):
        return
    for name, new in _RENAMED.items():
        if name not in script.aside or name.encode() not in script.text.data:
            continue
        for node in ast.walk(script.facts.scopes[0].node):
            if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
                yield script.seen(
                    node,
                    f"{name} is {new} since torch 2.13: reading it raises AttributeError",
                    _renamed(script, node, new),
                )


def _renamed(script: Script, node: ast.Attribute, new: str) -> tuple[Edit, ...]:
    _, end = script.text.span(node)
    return script.change("rename", end - len(node.attr.encode()), end, new)
