"""Tensors that forward makes on the CPU and lets meet its input."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaches
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import (
    DTYPE_CASTS,
    INTEGER_CASTS,
    JOINS,
    RESHAPES,
    SIZED_FACTORIES,
    VALUE_METHODS,
)
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.distributed_training_strategies.rules.placement import (
    MOVES,
    has_move,
    is_device,
    takes_as_is,
)

_MADE = SIZED_FACTORIES
_SHAPED = RESHAPES | DTYPE_CASTS | INTEGER_CASTS | {"repeat", "requires_grad_"}
_MEETING = symbols().meeting_methods
_FUNCTIONS = frozenset(f"torch.{name}" for name in JOINS | {"matmul", "bmm", "where"})
_ASKED = VALUE_METHODS


def made_inside(script: Script, forward: Scope) -> Iterator[Sighting]:
    inputs = _inputs(forward)
    for store in forward.actions:
        if isinstance(store, Call) or store.how != "assign" or store.index is not None or not inputs:
            continue
        made = _creation(script, store.value, forward)
        name = store.name
        if (
            made is None
            or "." in name
            or any(dotted(c.receiver) == name and c.tail in (*MOVES, "type_as") for c in forward.calls)
        ):
            continue
        if any(has_move(each.value) for each in forward.stores[name] if each.value is not None):
            continue
        if forward.stores[name][0] is store and (use := _meeting(script, forward, store, inputs)) is not None:
            yield script.seen(
                use, f"{name} is made on the CPU in line {made.lineno}, and the input is on the device of the model"
            )
            return


def made_on_the_way(step: TrainingStep) -> Iterator[Sighting]:
    """A tensor that the loop itself makes on the CPU, and gives to a model together with a part of the batch."""
    script, scope = step.script, step.ring.scope
    moved = {
        dotted(call.receiver)
        for _, call in step.calls(*MOVES)
        if call.scope is scope and dotted(call.receiver) and is_device(step, call)
    }
    for event in step.events:
        store = event.fact
        if isinstance(store, Call) or store.how != "assign" or store.index is not None or store.scope is not scope:
            continue
        made = _creation(script, store.value, scope)
        if made is None or "." in store.name or len(scope.stores[store.name]) != 1 or not _is_loose(scope, store):
            continue
        for later in step.events:
            call = later.call
            if call is None or call.scope is not scope or not reaches(event, later):
                continue
            given = {dotted(each) for each in call.arguments}
            if store.name in given and given & moved and takes_as_is(script, call):
                other = sorted(given & moved)[0]
                yield script.seen(
                    call.node, f"{store.name} is made on the CPU in line {made.lineno}, and {other} is on the device"
                )
                return


def _is_loose(scope: Scope, store: Store) -> bool:
    """Whether nothing ever moves what STORE names."""
    return not any(
        dotted(call.receiver) == store.name and call.tail in (*MOVES, "type_as", "cpu") for call in scope.calls
    )


def _inputs(forward: Scope) -> set[str]:
    """The first parameter of forward, when it is used as a tensor."""
    words = [each.arg for each in forward.parameters]
    if len(words) < 2:
        return set()
    first = words[1]
    used = any(
        (call.tail in _ASKED and dotted(call.receiver) == first)
        or (dotted(call.receiver) == forward.receiver and any(dotted(each) == first for each in call.node.args))
        or any(dotted(each).startswith(f"{first}.shape") for each in ast.walk(call.node))
        for call in forward.calls
    )
    return {first} if used and [s.how for s in forward.stores.get(first, ())][:1] == ["parameter"] else set()


def _creation(script: Script, node: ast.expr | None, scope: Scope) -> ast.Call | None:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SHAPED:
        if any("device" in (dotted(each) or "").lower() for each in node.args):
            return None
        node = node.func.value
    if not isinstance(node, ast.Call) or not node.args:
        return None
    word = script.names.resolve(node.func, scope)
    if not word.startswith("torch.") or word.removeprefix("torch.") not in _MADE:
        return None
    plain = all(keyword.arg not in ("device", "out", "pin_memory", None) for keyword in node.keywords)
    scalar = isinstance(node.args[0], ast.Tuple) and not node.args[0].elts
    return node if plain and not scalar else None


def _meeting(script: Script, forward: Scope, store: Store, inputs: set[str]) -> ast.expr | None:
    """Where the tensor that STORE names surely meets the input, or weights."""
    after = forward.stores[store.name][1].node if len(forward.stores[store.name]) > 1 else None
    last = getattr(after, "end_lineno", 0) or 1 << 30
    known = _derived(forward, inputs)
    for node in ast.walk(forward.node):
        line = getattr(node, "lineno", 0)
        if not getattr(store.node, "lineno", 0) < line <= last:
            continue
        match node:
            case ast.BinOp(left=left, right=right):
                pairs = [(left, right), (right, left)]
                if any(_is_it(a, store.name) and _is_input(b, known, forward) for a, b in pairs):
                    return node
            case ast.Call() if _meets(script, forward, node, store.name, known):
                return node
    return None


def _meets(script: Script, forward: Scope, node: ast.Call, name: str, known: set[str]) -> bool:
    given = [part for each in node.args for part in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each])]
    mine = any(_is_it(each, name) for each in given)
    others = any(_is_input(each, known, forward) for each in given)
    if isinstance(node.func, ast.Attribute) and dotted(node.func.value) == name:
        return node.func.attr in _MEETING and (others or any(_is_given(each, forward) for each in given))
    if script.names.resolve(node.func, forward) in _FUNCTIONS:
        return mine and others
    root, _, rest = dotted(node.func).partition(".")
    if not mine or root != forward.receiver or forward.host is None:
        return False
    stores = forward.host.attributes.get(rest, ())
    ends = [end.call for store in stores for end in script.trace.origins(_part(store), store.scope)]
    names = [script.names.resolve(end.func, forward) if end is not None else "" for end in ends]
    weighty = ("torch.nn.Embedding", "torch.nn.Linear", "torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")
    return bool(names) and all(each in weighty for each in names)


def _is_given(node: ast.expr, forward: Scope) -> bool:
    """Whether NODE is a parameter of forward, or a part of one: an index among the arguments of index_add."""
    for store in forward.stores.get(dotted(node), ()) if isinstance(node, ast.Name) else ():
        whole = forward.stores.get(dotted(store.value), ()) if store.index is not None else [store]
        if any(each.how == "parameter" for each in whole):
            return True
    return False


def _part(store: Store) -> ast.expr | None:
    """What STORE gives its name: of a, b = x, y the part at its place."""
    if store.index is None or not isinstance(store.value, ast.Tuple):
        return store.value if store.index is None else None
    return store.value.elts[store.index] if store.index < len(store.value.elts) else None


def _is_it(node: ast.expr, name: str) -> bool:
    """Whether NODE is the tensor NAME, or a view of it."""
    match node:
        case ast.Subscript(value=whole):
            return _is_it(whole, name)
        case ast.Call(func=ast.Attribute(value=whole, attr=attr)) if attr in {*_SHAPED, "clamp"}:
            return _is_it(whole, name)
    return isinstance(node, ast.Name) and node.id == name


def _derived(forward: Scope, inputs: set[str]) -> set[str]:
    """The local names that hold what layers and tensor methods make of the input."""
    known = set(inputs)
    for store in forward.actions:
        if isinstance(store, Call) or store.how != "assign" or store.index is not None or store.value is None:
            continue
        if len(forward.stores[store.name]) == 1 and _is_input(store.value, known, forward):
            known.add(store.name)
    return known


def _is_input(node: ast.expr, known: set[str], forward: Scope) -> bool:
    match node:
        case ast.Name(id=name):
            return name in known
        case ast.Subscript(value=value):
            return _is_input(value, known, forward)
        case ast.BinOp(left=left, right=right):
            return _is_input(left, known, forward) or _is_input(right, known, forward)
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=arguments):
            if dotted(value) == forward.receiver:
                return any(_is_input(each, known, forward) for each in arguments[:1])
            return attr not in (*_ASKED, *MOVES) and _is_input(value, known, forward)
    return False
