"""Where a value comes from when an object of the file holds it: settings, data classes, properties."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.script import Script

_DEEP = 4


def ends(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> Iterator[Origin]:
    """The origins of NODE, and for env.rank or args.gpu those of what the object was given under that name."""
    for origin in script.trace.origins(node, scope):
        inner = origin.node
        held = list(_held(script, inner, origin.scope)) if isinstance(inner, ast.Attribute) and deep < _DEEP else []
        for value, home in held:
            yield from ends(script, value, home, deep + 1)
        if not held:
            yield origin


def _held(script: Script, node: ast.Attribute, scope: Scope) -> Iterator[tuple[ast.expr, Scope]]:
    host = owner(script, node.value, scope)
    if host is not None:
        yield from _of_instance(script, host, node.attr)
        return
    name = dotted(node)
    for each in script.facts.scopes if name.count(".") == 1 and not script.names.resolve(node, scope) else ():
        for store in each.stores.get(name, ()):
            if store.how == "assign" and store.index is None and store.value is not None:
                yield store.value, store.scope


def owner(script: Script, node: ast.expr, scope: Scope) -> Scope | None:
    """The class of this file whose instance NODE is, by what made it or by its annotation."""
    host = script.trace.instance(node, scope)
    if host is not None:
        return host
    for origin in script.trace.origins(node, scope):
        if origin.is_parameter and isinstance(origin.node, ast.Name):
            noted = script.names.definition(origin.node.id, origin.scope)
            if noted is not None and noted.kind == "class":
                return noted
    return None


def _of_instance(script: Script, host: Scope, name: str) -> Iterator[tuple[ast.expr, Scope]]:
    """What an instance of HOST holds as NAME: by self.NAME, a property, a keyword of its making, or a default."""
    for each in script.trace.lineage(host):
        for store in each.attributes.get(name, ()):
            if store.value is not None and store.how == "assign" and store.index is None:
                yield store.value, store.scope
        if name in each.inner:
            yield from ((end.node.value, each.inner[name]) for end in each.inner[name].returns if end.node.value)
        fields = [key for key, stores in each.stores.items() if stores[0].how == "assign" and "." not in key]
        notes = [dotted(note.target) for note in _annotated(each)]
        made = [
            (call.argument(name, notes.index(name) if name in notes else None), call) for call in _makers(script, each)
        ]
        given = [(value, call.scope) for value, call in made if value is not None and (name in notes or name in fields)]
        yield from given
        for store in each.stores.get(name, ()) if not given else ():
            if store.how == "assign" and store.value is not None:
                yield _default(store.value), each


def _annotated(host: Scope) -> Iterator[ast.AnnAssign]:
    for each in getattr(host.node, "body", ()):
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each


def _makers(script: Script, host: Scope) -> Iterator[Call]:
    for call in script.calls(host.name):
        if script.trace.definition(call.node.func, call.scope) is host:
            yield call
    for call in script.calls("cls"):
        if call.scope.host is host and call.scope.receiver == "cls":
            yield call


def _default(value: ast.expr) -> ast.expr:
    """X of field(default_factory=lambda: X) and of field(default=X)."""
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] == "field":
        for keyword in value.keywords:
            if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Lambda):
                return keyword.value.body
            if keyword.arg == "default":
                return keyword.value
    return value
