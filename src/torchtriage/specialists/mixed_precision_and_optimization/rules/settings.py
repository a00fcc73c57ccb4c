"""What a setting is: through the default of a parameter, an entry of a dictionary, and a field of a configuration."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.script import Script

_DEEP = 4
_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace", "builtins.dict"})


def ends(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> Iterator[Origin]:
    """Every end at which the value of NODE may start, settings followed to where they are written."""
    for origin in script.trace.origins(node, scope):
        found = list(_further(script, origin, deep)) if deep < _DEEP else []
        yield from found or (origin,)


def _further(script: Script, origin: Origin, deep: int) -> Iterator[Origin]:
    if origin.is_parameter and origin.store is not None:
        default = _default(origin.store)
        if default is not None:
            yield from ends(script, default, origin.scope.parent or origin.scope, deep + 1)
        return
    match origin.node:
        case ast.Subscript(value=holder, slice=index):
            keys = {word(end.node) for end in ends(script, index, origin.scope, deep + 1)}
            key = keys.pop() if len(keys) == 1 else None
            if key is not None and not _is_rewritten(script, f"{dotted(holder).rpartition('.')[2]}[]"):
                yield from _entries(script, holder, key, origin.scope, deep)
        case ast.Attribute(value=holder, attr=key):
            if not _is_rewritten(script, f".{key}"):
                yield from _fields(script, holder, key, origin.scope, deep)


def word(node: ast.expr | None) -> str | None:
    """The string that NODE is."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def keywords(script: Script, call: ast.Call, scope: Scope) -> dict[str, ast.expr] | None:
    """The keywords of CALL, those of **options with them; None where the options are not known."""
    found: dict[str, ast.expr] = {}
    for keyword in call.keywords:
        if keyword.arg is not None:
            found[keyword.arg] = keyword.value
            continue
        made = list(ends(script, keyword.value, scope))
        name = dotted(keyword.value).rpartition(".")[2]
        options = _options(made[0].node) if len(made) == 1 and not _is_rewritten(script, f"{name}[]") else None
        if options is None:
            return None
        found.update(options)
    return found


def _options(node: ast.expr | None) -> dict[str, ast.expr] | None:
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = [(word(key), value) for key, value in zip(keys, values, strict=True)]
        case ast.Call(func=ast.Name(id="dict"), args=[], keywords=given):
            pairs = [(each.arg, each.value) for each in given]
        case _:
            return None
    named = {key: value for key, value in pairs if key is not None}
    return named if len(named) == len(pairs) else None


def _default(store: Store) -> ast.expr | None:
    """The default of a parameter."""
    node = store.scope.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return None
    words = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    given = dict(zip(reversed(words), reversed(node.args.defaults), strict=False))
    for each, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        if value is not None:
            given[each.arg] = value
    found = given.get(store.name)
    return None if isinstance(found, ast.Constant) and found.value is None else found


def _is_rewritten(script: Script, ending: str) -> bool:
    """Whether the file gives such an entry or field another value somewhere."""
    return any(
        name.endswith(ending) and not (scope.receiver and name == f"{scope.receiver}{ending}")
        for scope in script.facts.scopes
        for name in scope.stores
    )


def _entries(script: Script, holder: ast.expr, key: str, scope: Scope, deep: int) -> Iterator[Origin]:
    """What a dictionary that is written in this file holds under KEY."""
    for made in ends(script, holder, scope, deep + 1):
        match made.node:
            case ast.Dict(keys=keys, values=values):
                for each, value in zip(keys, values, strict=True):
                    if isinstance(each, ast.Constant) and each.value == key:
                        yield from ends(script, value, made.scope, deep + 1)
            case ast.Call():
                yield from _keywords(script, made, key, deep)


def _keywords(script: Script, made: Origin, key: str, deep: int) -> Iterator[Origin]:
    if made.call is not None and script.names.resolve(made.call.func, made.scope) in _NAMESPACES:
        for keyword in made.call.keywords:
            if keyword.arg == key:
                yield from ends(script, keyword.value, made.scope, deep + 1)


def _fields(script: Script, holder: ast.expr, key: str, scope: Scope, deep: int) -> Iterator[Origin]:
    """What a namespace, or a class of this file, gives the field KEY."""
    for made in ends(script, holder, scope, deep + 1):
        yield from _keywords(script, made, key, deep)
        host = script.trace.instance(holder, scope) or _class(script, made)
        if host is None:
            continue
        for store in host.stores.get(key, ()):
            if store.value is not None and store.how == "assign":
                yield from ends(script, store.value, host, deep + 1)
        for call in script.calls(host.name):
            for keyword in call.node.keywords:
                if keyword.arg in (key, None):
                    yield from ends(script, keyword.value, call.scope, deep + 1)


def _class(script: Script, made: Origin) -> Scope | None:
    """The class of this file that is made, that a parameter is annotated with, or that is given itself."""
    if made.store is not None and made.store.how == "define":
        given = script.names.definition(made.store.name, made.scope)
        return given if given is not None and given.kind == "class" else None
    named = made.call.func if made.call is not None else made.node
    found = script.names.definition(named.id, made.scope) if isinstance(named, ast.Name) else None
    return found if found is not None and found.kind == "class" else None
