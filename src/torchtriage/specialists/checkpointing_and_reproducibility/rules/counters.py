"""Loops that count their turns by hand: `while epoch < epochs: …; epoch += 1`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import loops
from torchtriage.examine.source.script import Script


class Counter(Struct, frozen=True):
    """The counter of a while loop. begun: what it is set to before the loop. adds: where the loop adds 1 to it."""

    loop: Block
    scope: Scope
    name: str
    begun: tuple[Store, ...]
    adds: Store


def counters(script: Script) -> Iterator[Counter]:
    for scope in script.facts.scopes:
        seen = {id(block): block for each in scope.actions for block in each.path if block.kind == "loop"}
        for loop in seen.values():
            match loop.owner:
                case ast.While(test=ast.Compare(left=ast.Name() | ast.Attribute() as left, ops=[ast.Lt() | ast.LtE()])):
                    yield from _counter(script, loop, scope, left)


def _counter(script: Script, loop: Block, scope: Scope, left: ast.expr) -> Iterator[Counter]:
    name = dotted(left)
    root, _, rest = name.partition(".")
    if rest:
        stores = scope.host.attributes.get(rest, []) if scope.host is not None and root == scope.receiver else []
    else:
        stores = script.names.stores(name, scope)
    adds = [store for store in stores if store.how == "augment"]
    begun = tuple(store for store in stores if store.how == "assign" and store.index is None)
    if len(adds) != 1 or len(begun) + 1 != len(stores) or any(loop in store.path for store in begun):
        return
    (add,) = adds
    match add.node:
        case ast.AugAssign(op=ast.Add(), value=ast.Constant(value=1)) if loops(add.path)[:1] == [loop]:
            if add.path[-1] is loop:
                yield Counter(loop, scope, name, begun, add)


def offset(script: Script, counter: Counter, value: ast.expr | None, scope: Scope) -> int | None:
    """What VALUE adds to the counter; None when it is not made of it."""
    match value:
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int(more))):
            inner = offset(script, counter, left, scope)
            return None if inner is None else inner + more
        case ast.Name(id=name) if scope is not counter.scope and name != counter.name.partition(".")[0]:
            return _passed(script, counter, name, scope)
        case ast.Name() | ast.Attribute() if dotted(value) == counter.name:
            own = scope is counter.scope or (scope.host is counter.scope.host is not None)
            return 0 if own else _passed(script, counter, counter.name, scope)
    return None


def _passed(script: Script, counter: Counter, name: str, scope: Scope) -> int | None:
    """What the only call of the function SCOPE gives its parameter NAME."""
    words = [each.arg for each in scope.parameters]
    sites = script.trace.sites(scope)
    if name not in words or len(sites) != 1 or sites[0].scope is not counter.scope:
        return None
    site: Call = sites[0]
    return offset(script, counter, site.argument(name, words.index(name) - (scope.receiver in words[:1])), site.scope)
