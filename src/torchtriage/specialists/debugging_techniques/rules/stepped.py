"""Weights that an optimizer changes while a loss that was computed with them still waits for its backward."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from torchtriage.examine.detector import Sighting
from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches, reaching, surely
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.torch_api.families import GRAPH_CUTS
from torchtriage.specialists.debugging_techniques.rules.likeness import given, has_parameters
from torchtriage.specialists.debugging_techniques.rules.values import constructions, is_off

_CUTS = GRAPH_CUTS | {"data"}
_DEEP = 5
Held: TypeAlias = dict[int, set[str]]


def weights_moved(step: TrainingStep) -> Iterator[Sighting]:
    """A loss goes backward through weights that an optimizer has changed since it was computed."""
    script = step.script
    stepping = step.optimizing()
    for backward in step.backwards if stepping else ():
        made = _computed(step, backward)
        for event, call, parts in stepping if made is not None else ():
            between = made is not None and reaches(made, event) and surely(event, backward.event)
            if not between or len(parts) != 1 or not any(reaches(b.event, event) for b in step.backwards):
                continue
            store = made.fact if made is not None else None
            held = _held(script, parts[0])
            used = _runs(script, store.value, store.scope, store, held, 0) if isinstance(store, Store) else None
            if used is not None:
                yield script.seen(
                    backward.call.node,
                    f"{script.source(used.func)} was run in line {used.lineno}, and the step() of line "
                    f"{call.node.lineno} has changed its weights in place since: this backward needs the old ones and "
                    "raises",
                )
                break


def _computed(step: TrainingStep, backward: Backward) -> Event | None:
    """Where the loss of BACKWARD was computed, when that is one place in the same function or class."""
    name, scope = dotted(backward.root), backward.call.scope
    own = bool(scope.receiver) and name.startswith(f"{scope.receiver}.")
    found = [
        event
        for event in step.events
        if isinstance(event.fact, Store)
        and event.fact.name == name
        and event.fact.how in ("assign", "augment")
        and (event.fact.scope is scope or (own and event.fact.scope.host is scope.host))
    ]
    before = [event for event in found if name and reaches(event, backward.event)]
    return before[0] if len(before) == 1 and len(found) == 1 else None


def _held(script: Script, part: Part) -> Held:
    """The networks of several layers whose weights the optimizer PART changes: what makes each, and under which names.

    A builder that is called more than once makes several of them: these are told apart by their names alone.
    """
    found: Held = {}
    for module in given(script, part.made, part.scope) if part.made and part.scope else ():
        for call, scope in constructions(script, module, part.scope) if part.scope else ():
            if _is_deep(script, call, scope):
                is_builder = scope.kind == "function" and len(script.trace.sites(scope)) > 1
                found.setdefault(id(call), set()).add(dotted(module) if is_builder else "")
    return found


def _is_deep(script: Script, made: ast.Call, scope: Scope) -> bool:
    """Whether what MADE constructs has two layers or more: the weights of the second are needed for the first."""
    own = script.trace.definition(made.func, scope)
    if own is None:
        name = script.names.resolve(made.func, scope)
        layers = [each for given in made.args for each in _layers(given, scope) if has_parameters(script, each, scope)]
        return name.startswith("torchvision.models.") or (name == "torch.nn.Sequential" and len(layers) > 1)
    if own.kind != "class":
        return False
    stored = [store for stores in own.attributes.values() for store in stores if store.value is not None]
    inside = [(inner, store.scope) for store in stored for inner in ast.walk(store.value or ast.Pass())]
    layers = [node for node, where in inside if isinstance(node, ast.Call) and _is_layer(script, node, where)]
    return len(layers) > 1


def _layers(node: ast.expr, scope: Scope) -> list[ast.expr]:
    """NODE, or what *NODE puts there: the entries of a list, those that a loop adds to it twice."""
    if not isinstance(node, ast.Starred) or not isinstance(node.value, ast.Name):
        return [node]
    name = node.value.id
    puts = [(store.path, store.value) for store in scope.stores.get(name, ()) if store.value is not None]
    puts += [(call.path, each) for call in scope.calls if dotted(call.receiver) == name for each in call.arguments]
    return [
        each
        for path, value in puts
        for each in (value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
        for _ in range(2 if any(block.kind == "loop" for block in path) else 1)
    ]


def _is_layer(script: Script, node: ast.Call, scope: Scope) -> bool:
    name = script.names.resolve(node.func, scope)
    return name != "torch.nn.Parameter" and not name.endswith("Sequential") and has_parameters(script, node, scope)


def _runs(
    script: Script, node: ast.expr | None, scope: Scope, spot: Store | Call, held: Held, deep: int
) -> ast.Call | None:
    """The call of one of the networks HELD by which NODE is computed, its graph kept."""
    if node is None or deep > _DEEP or not held or (isinstance(node, ast.Attribute) and node.attr in _CUTS):
        return None
    if isinstance(node, ast.Name):
        stores = reaching(scope.stores.get(node.id, ()), spot)
        one = stores[0] if len(stores) == 1 and stores[0].how == "assign" else None
        if one is None or one.order >= spot.order or is_off(script, one.path, scope):
            return None
        return _runs(script, one.value, scope, one, held, deep + 1)
    if isinstance(node, ast.Call):
        is_known, found = _called(script, node, scope, spot, held, deep)
        if is_known:
            return found
    for inner in ast.iter_child_nodes(node):
        value = inner.value if isinstance(inner, ast.keyword) else inner
        found = _runs(script, value, scope, spot, held, deep) if isinstance(value, ast.expr) else None
        if found is not None:
            return found
    return None


def _called(
    script: Script, node: ast.Call, scope: Scope, spot: Store | Call, held: Held, deep: int
) -> tuple[bool, ast.Call | None]:
    """Whether NODE itself settles the question, and the call of a network that it is or that it leads to."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _CUTS:
        return True, None
    ends = constructions(script, node.func, scope) if dotted(node.func) else []
    names = held.get(id(ends[0][0]), set()) if len(ends) == 1 else set()
    if names & {"", dotted(node.func)} and not is_off(script, spot.path, scope):
        return True, node
    own = script.trace.definition(node.func, scope)
    if own is None or own.kind != "function":
        return False, None
    ways = [_runs(script, e.node.value, own, _last(own) or spot, held, deep + 1) for e in own.returns]
    return True, ways[0] if ways and all(ways) and not is_off(script, own.body.path, own) else None


def _last(function: Scope) -> Store | Call | None:
    return function.actions[-1] if function.actions else None
