"""Parameters that join a model after its optimizer was made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches, shared
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.specialists.debugging_techniques.rules.likeness import (
    PLAIN,
    given,
    has_parameters,
    is_network,
    same,
    targets,
)

_JOINING = ("add_module", "register_module", "register_parameter", "append", "setattr")


def made_late(script: Script, part: Part) -> Iterator[Sighting]:
    """Layers that replace or join those of a model whose parameters the optimizer has got already."""
    if part.made is None or part.scope is None:
        return
    modules = given(script, part.made, part.scope)
    own = [dotted(target) for target in targets(part.scope, part.made)]
    if not modules or not own:
        return
    for node, what in (*_in_order(script, part, modules, own), *_in_methods(script, part, modules, own)):
        if not _is_frozen(script, what):
            yield script.seen(
                node,
                f"{what} gets new parameters here; the optimizer of line {part.made.lineno} has those of before, "
                "and never changes the new ones",
            )


def _in_order(script: Script, part: Part, modules: list[ast.expr], own: list[str]) -> Iterator[tuple[ast.AST, str]]:
    """What is made later in the function that makes the optimizer, the functions that it calls included."""
    scope = part.scope
    events = script.written.events(Ring(scope.body, scope)) if scope is not None else ()
    built = next((event for event in events if event.call is not None and event.call.node is part.made), None)
    for event in events[built.order + 1 :] if built is not None else ():
        found = _joins(script, event.fact, modules, part)
        if built is None or found is None or not reaches(built, event):
            continue
        again = any(block.kind == "loop" for block in event.path[: shared(built, event)])
        if not again and _is_used_after(script, part, own, events[event.order + 1 :]):
            yield found


def _in_methods(script: Script, part: Part, modules: list[ast.expr], own: list[str]) -> Iterator[tuple[ast.AST, str]]:
    """What other methods make, where the constructor has made the optimizer, and nobody makes it again."""
    scope = part.scope
    if scope is None or scope.host is None or scope.name != "__init__" or not scope.receiver:
        return
    names = [name.partition(".")[2] for name in own if name.startswith(f"{scope.receiver}.")]
    if not names or any(len(scope.host.attributes.get(name, ())) != 1 for name in names):
        return
    inside = {id(event.fact.scope) for event in script.written.events(Ring(scope.body, scope))}
    for method in scope.host.inner.values():
        if method.kind == "function" and id(method) not in inside:
            for action in method.actions:
                found = _joins(script, action, modules, part)
                if found is not None:
                    yield found


def _joins(script: Script, action: Call | Store, modules: list[ast.expr], part: Part) -> tuple[ast.AST, str] | None:
    """The node and the name of what ACTION gives new parameters to: one of MODULES, or a part of it."""
    if isinstance(action, Store):
        whole = action.name.removesuffix("[]")
        named = isinstance(action.node, ast.Assign) and action.how == "assign" and action.index is None
        for target in action.node.targets if isinstance(action.node, ast.Assign) and named else ():
            place = _place(script, target, action.scope, modules, part)
            if place is not None and _is_new(script, action, whole=place == 0):
                return action.node, whole
        return None
    if action.tail not in _JOINING or not action.node.args:
        return None
    receiver = action.node.args[0] if action.tail == "setattr" else action.receiver
    if receiver is not None and has_parameters(script, action.node.args[-1], action.scope):
        if _place(script, receiver, action.scope, modules, part) is not None:
            return action.node, dotted(receiver)
        if action.tail == "setattr" and _is_about(script, action.scope, modules, part):
            return action.node, f"a part of {dotted(modules[0])}"
    return None


def _place(script: Script, target: ast.expr, scope: Scope, modules: list[ast.expr], part: Part) -> int | None:
    """How deep inside of one of MODULES the thing TARGET lies; 0 for that module itself, None for another."""
    deep = 0
    inner: ast.expr = target
    while True:
        if part.scope is not None and any(same(script, inner, scope, each, part.scope) for each in modules):
            return deep
        if not isinstance(inner, ast.Attribute | ast.Subscript):
            return None
        inner, deep = inner.value, deep + 1


def _is_about(script: Script, scope: Scope, modules: list[ast.expr], part: Part) -> bool:
    """Whether a function takes the model and goes through its parts: for name, child in model.named_modules()."""
    if part.scope is None or not any(call.tail.startswith("named_") for call in scope.calls):
        return False
    names = [ast.Name(each.arg, ast.Load()) for each in scope.parameters]
    return any(same(script, name, scope, each, part.scope) for name in names for each in modules)


def _is_new(script: Script, store: Store, *, whole: bool) -> bool:
    """Whether STORE surely brings new parameters; a WHOLE model also by a class of this file or of torchvision."""
    value = _made(store.value)
    if value is None or (whole and _mentions(value, store.name)):
        return False
    if has_parameters(script, value, store.scope):
        return True
    name = script.names.resolve(value.func, store.scope)
    return whole and (is_network(script, value, store.scope) or name.startswith("torchvision.models."))


def _made(node: ast.expr | None) -> ast.Call | None:
    """The construction behind Net().to(device)."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PLAIN:
        node = node.func.value
    return node if isinstance(node, ast.Call) else None


def _mentions(node: ast.expr, name: str) -> bool:
    return any(dotted(inner) == name for inner in ast.walk(node))


def _is_used_after(script: Script, part: Part, own: list[str], later: tuple[Event, ...]) -> bool:
    """Whether the optimizer is stepped or handed on in the events LATER, and is not made anew there."""
    scope = part.scope
    if scope is None or any(
        isinstance(each.fact, Store) and each.fact.scope is scope and each.fact.name in own for each in later
    ):
        return False
    if any(name.startswith(f"{scope.receiver}.") for name in own if scope.receiver):
        return True
    returned = (each.node.value for each in scope.returns if each.node.value is not None)
    if any(dotted(node) in own for value in returned for node in ast.walk(value)):
        return True
    calls = [event.call for event in later if event.call is not None]
    if any(dotted(each) in own for call in calls if call.scope is scope for each in call.arguments):
        return True
    return any(
        each.made is part.made
        for call in calls
        if call.tail == "step"
        for each in script.roles.parts(call.receiver, call.scope)
    )


def _is_frozen(script: Script, name: str) -> bool:
    if any(dotted(call.receiver).startswith(name) for call in script.calls("requires_grad_")):
        return True
    keys = (key for scope in script.facts.scopes for key in scope.stores)
    return any(key.startswith(f"{name}.") and key.endswith("requires_grad") for key in keys)
