"""Which models an optimizer trains, and whether two expressions of one file are the same object."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import last_words, symbols

_WRAPPERS = last_words(symbols().transparent_wrappers)
_PARAMETERS = ("parameters", "named_parameters")


def starts(script: Script, node: ast.expr | None, scope: Scope) -> set[int]:
    """Where the value of NODE starts: its constructor calls and parameters."""
    found = script.trace.origins(node, scope)
    return {id(each.store) if each.is_parameter else id(each.node) for each in found if each.call or each.is_parameter}


def optimized(script: Script, part: Part) -> set[int]:
    """The models whose parameters the optimizer PART is made with."""
    if part.made is None or part.scope is None:
        return set()
    return {
        start
        for model, scope in _named(script, part.made, part.scope)
        for each, where in _wholes(script, model, scope)
        for start in starts(script, each, where)
    }


def is_frozen(script: Script, model: ast.expr, scope: Scope) -> bool:
    """Whether the file freezes MODEL: by its own requires_grad_, or its parameters in a loop."""
    mine = starts(script, model, scope)
    loops = (
        each
        for each in script.calls("parameters", "named_parameters")
        if mine & starts(script, each.receiver, each.scope)
    )
    frozen = any(mine & starts(script, each.receiver, each.scope) for each in script.calls("requires_grad_"))
    return frozen or any(_freezes(each) for each in loops)


def _freezes(parameters: Call) -> bool:
    """Whether the loop that stands over PARAMETERS says requires_grad."""
    loop = parameters.statement
    if not isinstance(loop, ast.For | ast.AsyncFor):
        return False
    inside = (inner for each in loop.body for inner in ast.walk(each) if isinstance(inner, ast.Attribute))
    return any(inner.attr in ("requires_grad", "requires_grad_") for inner in inside)


def _wholes(script: Script, model: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """MODEL, what it is a part of (net of net.head), and what it wraps (net of DataParallel(net))."""
    yield model, scope
    if isinstance(model, ast.Attribute) and dotted(model.value) != scope.receiver:
        yield model.value, scope
    for origin in script.trace.origins(model, scope):
        wrapped = origin.call.args[:1] if origin.call is not None else []
        name = script.names.resolve(origin.call.func, origin.scope) if origin.call is not None else ""
        if name.rpartition(".")[2] in _WRAPPERS:
            yield from ((each, origin.scope) for each in wrapped)


def bound(script: Script, node: ast.expr, scope: Scope) -> set[tuple[int, int]]:
    """The models whose parameters are named in NODE, two that one function has made told apart by their names."""
    found = [each for model, where in _named(script, node, scope) for each in script.trace.origins(model, where)]
    return {(id(each.node), id(each.store)) for each in found}


def _named(script: Script, node: ast.expr, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    """The models in NODE, and in what the names that it is given stand for: params = [… net.parameters()]."""
    for model in _owners(node):
        yield model, scope
    for given in node.args[:1] if isinstance(node, ast.Call) else ():
        for origin in script.trace.origins(given, scope) if dotted(given) else ():
            for model in _owners(origin.node) if origin.node is not None and not origin.is_parameter else ():
                yield model, origin.scope


def _owners(node: ast.expr) -> Iterator[ast.expr]:
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=ast.Attribute(value=model, attr=attr)) if attr in _PARAMETERS:
                yield model


def is_same(script: Script, one: ast.expr | None, here: Call, other: ast.expr | None, there: Call) -> bool:
    """Whether ONE in the call HERE is surely the object that OTHER is in the call THERE."""
    name = dotted(one)
    if not name:
        return False
    if name == dotted(other) and (here.scope is there.scope or _is_shared(script, name, here.scope, there.scope)):
        return True
    mine, theirs = (_made(script, node, call.scope) for node, call in ((one, here), (other, there)))
    return mine is not None and mine is theirs


def _is_shared(script: Script, name: str, here: Scope, there: Scope) -> bool:
    """Whether NAME is bound once, outside of both scopes or on their own object."""
    root = name.partition(".")[0]
    if root == here.receiver == there.receiver:
        return here.host is not None and here.host is there.host
    home = script.names.home(root, here)
    return home is not None and home is script.names.home(root, there) and _is_once(home.stores[root])


def _is_once(stores: list[Store]) -> bool:
    return len(stores) == 1 and stores[0].how in ("assign", "parameter")


def _made(script: Script, node: ast.expr | None, scope: Scope) -> ast.Call | None:
    """The one constructor call that NODE surely comes from, made once for all of the file."""
    found = script.trace.origins(node, scope)
    once = len(found) == 1 and found[0].call is not None and not any(b.kind == "loop" for b in _path(found[0].store))
    return found[0].call if once else None


def _path(store: Store | None) -> tuple[Block, ...]:
    return store.path if store is not None else ()
