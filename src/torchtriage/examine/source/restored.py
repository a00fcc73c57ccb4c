"""Whose state a load_state_dict loads, also where a loop takes the parts one by one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

_HABITS = {"optim": "optimizer", "opt": "optimizer", "sched": "scheduler", "scaler": "scaler"}
_GROWS = ("append", "extend", "insert", "update", "setdefault")
_DEEP = 4


def given_states(script: Script, call: Call, node: ast.expr | None) -> set[str]:
    """The roles of all parts that NODE, the receiver of the load CALL, may be; "?" where one of them is not known."""
    exact = _taken_by_key(script, node, call.scope)
    if exact is not None:
        return exact
    parts = script.roles.parts(node, call.scope)
    found = {part.role for part in parts}
    if any(True for _ in _unseen(script, node, call.scope)):
        found.add("?")
    if found:
        return found
    return {_habitual(dotted(node).rpartition(".")[2])}


def _habitual(word: str) -> str:
    return next((role for habit, role in _HABITS.items() if habit in word.lower()), "?")


def _entry(script: Script, held: ast.expr, key: str, scope: Scope) -> set[str]:
    return {part.role for part in script.roles.entry(held, key, scope)} or {_habitual(key)}


def is_stub(node: ast.AST) -> bool:
    """Whether a function does nothing by itself: what it is for stands in a subclass that need not be in this file."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return all(
        isinstance(each, ast.Pass | ast.Raise)
        or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        or (isinstance(each, ast.Return) and (each.value is None or isinstance(each.value, ast.Constant)))
        for each in node.body
    )


def _taken_by_key(script: Script, node: ast.expr | None, scope: Scope) -> set[str] | None:
    """The roles of parts[name] where `for name in ("net", "optimizer")` gives the names; None for any other form."""
    match node:
        case ast.Subscript(value=held, slice=ast.Name(id=key)):
            stores = script.names.stores(key, scope)
            keys = [word for store in stores for word in _words(script, store)]
            if not stores or not all(store.how == "element" for store in stores) or not all(keys):
                return None
            return None if _grows(script, held) else {role for key in keys for role in _entry(script, held, key, scope)}
    return None


def _words(script: Script, store: Store) -> Iterator[str]:
    """The words that a loop goes over; an empty one when not all of them can be seen."""
    for origin in script.trace.origins(store.value, store.scope) if store.index is None else ():
        match origin.node:
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if not _grows(script, store.value):
                for each in elements:
                    yield each.value if isinstance(each, ast.Constant) and isinstance(each.value, str) else ""
                continue
        yield ""
    if store.index is not None:
        yield ""


def _unseen(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> Iterator[ast.expr | None]:
    """The places at which NODE may come from where nobody sees it: a list that grows, a computed key."""
    if isinstance(node, ast.Subscript) and not dotted(node):
        yield node
    stores = script.names.stores(node.id, scope) if isinstance(node, ast.Name) else ()
    for store in stores:
        if store.how == "element" and not _is_written_out(script, store):
            yield node
        elif store.how == "parameter" and deep < _DEEP:
            words = [each.arg for each in scope.parameters]
            at = words.index(store.name) - (scope.receiver in words[:1]) if store.name in words else None
            for site in script.trace.sites(scope) if at is not None else ():
                yield from _unseen(script, site.argument(store.name, at), site.scope, deep + 1)


def _is_written_out(script: Script, store: Store) -> bool:
    """Whether all that a loop takes stands in a tuple, list or dictionary of this file, to which nothing is added."""
    over = [store.value]
    match store.value:
        case ast.Call(func=ast.Attribute(value=held, attr="values" | "items"), args=[]):
            over = [held]
        case ast.Call(func=ast.Name(id="zip" | "enumerate"), args=given):
            over = [*given]
    return all(_is_literal(script, each, store.scope) for each in over)


def _is_literal(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    ends = [origin.node for origin in script.trace.origins(node, scope)]
    return bool(ends) and not _grows(script, node) and all(_is_closed(each) for each in ends)


def _is_closed(node: ast.expr | None) -> bool:
    match node:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return not any(isinstance(each, ast.Starred) for each in elements)
        case ast.Dict(keys=keys):
            return None not in keys
    return False


def _grows(script: Script, node: ast.expr | None) -> bool:
    """Whether anything of that name gets more entries, or other ones, somewhere in the file."""
    last = dotted(node).rpartition(".")[2]
    put = any(name.endswith(f"{last}[]") for scope in script.facts.scopes for name in scope.stores)
    more = any(dotted(call.receiver).rpartition(".")[2] == last for call in script.calls(*_GROWS))
    return bool(last) and (put or more)
