"""Asynchronous transfers between ranks: whether anybody waits until they are done."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.specialists.distributed_training_strategies.rules.collectives import COLLECTIVES, HOME

# By these a program makes sure that transfers are done; one of them anywhere in the file may mean any of them.
_WAITS = frozenset(
    {"wait", "wait_all", "waitall", "wait_for_completion", "synchronize", "is_completed", "is_success", "result"}
    | {"get_future", "wait_tensor", "current_stream", "_coalescing_manager", "wait_stream", "wait_event"}
)
_PUTS = frozenset({"append", "clear", "extend", "add", "appendleft"})
# What may be done with a handle, or what holds it, without anybody getting hold of it.
_LOOKS = frozenset({"len", "print", "zip", "enumerate", "isinstance", "bool", "id", "type", "reversed"})


@detector("source/handle-not-waited")
def handle_not_waited(script: Script) -> Iterator[Sighting]:
    """An asynchronous transfer is started and never waited for."""
    started = list(_asynchronous(script))
    if not started:
        return
    waits = not _WAITS.isdisjoint(script.facts.calls.keys() | script.aside)
    for call in started:
        name = _kept_as(call)
        what = dotted(call.node.func)
        if name == "":
            yield script.seen(
                call.node, f"what {what} returns is thrown away: nothing can wait until the transfer is done"
            )
        elif (
            name is not None
            and _is_seen_whole(script, call, name)
            and not (_is_used(call, name) if waits else _is_given_away(script, call, name))
        ):
            kept = f"{name} is never waited for" if not waits else f"{name} is never used again"
            yield script.seen(call.node, f"{kept}: nothing can tell when the transfer is done")


def _asynchronous(script: Script) -> Iterator[Call]:
    for call in script.calls("isend", "irecv", "batch_isend_irecv"):
        if script.name(call).startswith(HOME):
            yield call
    for tail in COLLECTIVES:
        for call in script.facts.calls.get(tail, ()):
            flag = call.argument("async_op")
            if isinstance(flag, ast.Constant) and flag.value is True and script.name(call).startswith(HOME):
                yield call


def _kept_as(call: Call) -> str | None:
    """The name of the handle, or of what holds it; "" when it gets none at all, None when it goes elsewhere."""
    name: str | None = None
    match call.statement:
        case ast.Expr(value=value) if value is call.node:
            return ""
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=held, attr="append" | "extend"), args=[value])):
            name = dotted(held) if _is_or_holds(value, call.node) and _is_list(call, dotted(held)) else None
        case ast.Assign(targets=[ast.Subscript(value=held)], value=value):
            name = dotted(held) if _is_or_holds(value, call.node) and _is_list(call, dotted(held)) else None
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=value):
            name = dotted(target) if _is_or_holds(value, call.node) else None
        case ast.AugAssign(target=ast.Name() as target, value=ast.List(elts=[value])) if value is call.node:
            name = target.id if _is_list(call, target.id) else None
    return name if name and _is_own(call, name) else None


def _is_own(call: Call, name: str) -> bool:
    """Whether NAME belongs to this function, or to its object and nobody else: not to the module."""
    root, _, rest = name.partition(".")
    if rest:
        return root == call.scope.receiver and "." not in rest
    return name not in call.scope.outside and not name.startswith("_") and call.scope.kind != "class"


def _is_seen_whole(script: Script, call: Call, name: str) -> bool:
    """Whether nobody out of sight reads NAME: an attribute of a class that is used in this file, or a private one."""
    return "." not in name or ("._" in name and "__" not in name) or bool(script.trace.sites(call.scope))


def _is_list(call: Call, name: str) -> bool:
    """Whether NAME is a list or dictionary that starts empty in this function, or in its object."""
    root, _, rest = name.partition(".")
    host = call.scope.host if rest and root == call.scope.receiver else None
    stores = host.attributes.get(rest, []) if host is not None else call.scope.stores.get(name, [])
    given = [each.value for each in stores if each.how == "assign"]
    empty = (ast.List, ast.Dict)
    return bool(given) and all(
        isinstance(each, empty) or (isinstance(each, ast.Call) and dotted(each.func) in ("list", "dict", "deque"))
        for each in given
    )


def _is_or_holds(value: ast.expr, call: ast.Call) -> bool:
    """Whether VALUE is the handle, or a tuple or a list of handles."""
    match value:
        case ast.ListComp(elt=inner) | ast.DictComp(value=inner):
            return _is_or_holds(inner, call)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(each is call for each in parts)
    return value is call


def _home(call: Call, name: str) -> ast.AST:
    host = call.scope.host
    return host.node if "." in name and host is not None else call.scope.node


def _is_used(call: Call, name: str) -> bool:
    """Whether the handle, or what it is put into, is ever read; more of append alone is no use."""
    nodes = list(ast.walk(_home(call, name)))
    puts = {id(n.value) for n in nodes if isinstance(n, ast.Attribute) and n.attr in _PUTS}
    puts |= {id(n.value) for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store)}
    if "." in name and _is_read_outside(call, name):
        return True
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and dotted(node) == name
        and isinstance(node.ctx, ast.Load)
        and id(node) not in puts
        for node in nodes
    )


def _is_read_outside(call: Call, name: str) -> bool:
    """Whether the attribute is read through another name than self."""
    last, scope = name.rpartition(".")[2], call.scope
    while scope.parent is not None:
        scope = scope.parent
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == last
        and isinstance(node.ctx, ast.Load)
        and dotted(node) != name
        for node in ast.walk(scope.node)
    )


def _is_given_away(script: Script, call: Call, name: str) -> bool:
    """Whether the handle may come into other hands than those of this file, in which nothing waits."""
    last = name.rpartition(".")[2]
    names, homes = {last}, [call.scope]
    if "." in name and call.scope.host is not None:
        homes = [each for each in script.facts.scopes if each.host is call.scope.host]
        if _is_read_outside(call, name) or not last.startswith("_"):
            return _is_read_outside(call, name) or _is_used(call, name)
    for home in homes:
        names |= {store.name for store in _taken(home, names)}
    return any(_hands_on(node, names) for home in homes for node in ast.walk(home.node))


def _taken(home: Scope, names: set[str]) -> Iterator[Store]:
    """What loops over the handles, and names of parts of them, are called."""
    for stores in home.stores.values():
        for store in stores:
            value = store.value
            if value is not None and store.how in ("element", "assign") and store.name not in names:
                held = (each for each in ast.walk(value) if isinstance(each, ast.Name | ast.Attribute))
                plain = isinstance(value, ast.Name | ast.Attribute | ast.Subscript) or store.how == "element"
                if plain and any(dotted(each).rpartition(".")[2] in names for each in held):
                    yield store


def _hands_on(node: ast.AST, names: set[str]) -> bool:
    """Whether NODE returns one of NAMES, or gives it to a function that does more than look."""
    given: list[ast.expr] = []
    match node:
        case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
            given = [value]
        case ast.Call(func=ast.Attribute(value=held, attr=attr)) if dotted(held).rpartition(".")[2] in names:
            return attr not in (*_PUTS, "values", "items", "keys")
        case ast.Call(func=ast.Attribute(attr="append" | "extend" | "add")):
            given = []
        case ast.Call(func=called, args=arguments, keywords=keywords) if dotted(called) not in _LOOKS:
            given = [*arguments, *(each.value for each in keywords)]
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()], value=value):
            given = [value] if isinstance(value, ast.Name) else []
    parts = (part for each in given for part in (each.elts if isinstance(each, ast.Tuple | ast.List) else [each]))
    return any(dotted(each).rpartition(".")[2] in names for each in parts if isinstance(each, ast.Name | ast.Attribute))
