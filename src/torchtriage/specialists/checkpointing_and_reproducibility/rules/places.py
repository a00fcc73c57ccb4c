"""Where things stand in the text, for edits, and which parts of a file a rule of this room asks for again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script

_DEEP = 6
_OPENS = ("builtins.open", "io.open")


def parts_of(script: Script, node: ast.expr | None, scope: Scope) -> Iterator[tuple[str, ast.expr, Scope]]:
    """The entries of the dictionaries that NODE may be: key, value, scope. Also those that are put in one by one."""
    for origin in script.trace.origins(node, scope):
        if isinstance(origin.node, ast.Dict):
            yield from _pairs(origin.node, origin.scope)
        elif origin.call is not None and dotted(origin.call.func) == "dict":
            yield from ((each.arg, each.value, origin.scope) for each in origin.call.keywords if each.arg)
    if isinstance(node, ast.Name):
        for store in scope.stores.get(f"{node.id}[]", ()):
            key = store.node.targets[0] if isinstance(store.node, ast.Assign) else None
            if isinstance(key, ast.Subscript) and isinstance(key.slice, ast.Constant) and store.value is not None:
                yield str(key.slice.value), store.value, scope


def _pairs(node: ast.Dict, scope: Scope) -> Iterator[tuple[str, ast.expr, Scope]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            yield str(key.value), value, scope


def saves(script: Script) -> Iterator[Call]:
    """The torch.save calls of the file."""
    yield from script.named("torch.save")


def unwrapped(node: ast.expr | None) -> ast.expr | None:
    """The model itself, of model.module and model._orig_mod."""
    while isinstance(node, ast.Attribute) and node.attr in ("module", "_orig_mod"):
        node = node.value
    return node


def states_of(store: Store) -> ast.expr | None:
    """What STORE puts under its name, when it is one expression: of a tuple, the part that the name gets."""
    if store.how != "assign" or store.value is None:
        return None
    if store.index is None:
        return store.value
    parts = store.value.elts if isinstance(store.value, ast.Tuple | ast.List) else []
    return parts[store.index] if store.index < len(parts) else None


def opened(script: Script, node: ast.expr | None, scope: Scope) -> tuple[ast.expr | None, Scope]:
    """The path that NODE writes to or reads from, where NODE is a file that this script opens; else NODE itself."""
    entered = script.names.stores(node.id, scope) if isinstance(node, ast.Name) else []
    around = [each for each in entered if each.how == "enter" and _spans(each.node, node)]
    for store in around[-1:]:
        match store.value:
            case ast.Call(func=called, args=[path, *_]) if script.names.resolve(called, scope) in _OPENS:
                return path, store.scope
            case ast.Call(func=ast.Attribute(value=path, attr="open")):
                return path, store.scope
    return node, scope


def _spans(block: ast.AST, node: ast.AST | None) -> bool:
    first, last = getattr(block, "lineno", 0), getattr(block, "end_lineno", 0)
    return bool(first <= getattr(node, "lineno", 0) <= last)


def same_path(script: Script, one: tuple[ast.expr | None, Scope], other: tuple[ast.expr | None, Scope]) -> bool:
    """Whether two paths are one: by what they come from, or, where callers decide that, by how they are written."""
    one, other = opened(script, *one), opened(script, *other)
    if one[0] is None or other[0] is None:
        return False
    ends, others = _ends(script, *one), _ends(script, *other)
    if ends and others:
        return ends == others
    alike = ast.dump(one[0]) == ast.dump(other[0])
    return alike and all(_is_one_name(script, name, one[1], other[1]) for name in _roots(one[0]))


def holds(script: Script, save: Call, path: tuple[ast.expr | None, Scope]) -> bool:
    """Whether PATH is the file that SAVE writes, also when it is written beside it and then renamed."""
    written = (save.argument("f", 1), save.scope)
    if same_path(script, path, written):
        return True
    moves = script.named("os.replace", "os.rename", "shutil.move")
    return any(
        same_path(script, written, (move.argument("src", 0), move.scope))
        and same_path(script, path, (move.argument("dst", 1), move.scope))
        for move in moves
    )


def _roots(node: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _is_one_name(script: Script, name: str, here: Scope, there: Scope) -> bool:
    """Whether NAME is the same variable in both scopes, or the object itself in two methods of one class."""
    if here is there or (here.host is there.host is not None and here.receiver == there.receiver == name):
        return True
    return script.names.home(name, here) is script.names.home(name, there)


def _ends(script: Script, node: ast.expr | None, scope: Scope) -> list[str]:
    """The expressions and parameters that a path comes from; none when that cannot be seen."""
    found = []
    for origin in script.trace.origins(node, scope):
        if origin.is_parameter:
            default = default_of(script, origin)
            found.append(f"parameter {id(origin.store)}" if default is None else ast.dump(default))
        elif origin.node is None:
            return []
        else:
            found.append(ast.dump(origin.node))
    return found


def default_of(script: Script, origin: Origin) -> ast.expr | None:
    """What a parameter surely is when its function is called in this file and no call gives it."""
    node, name = origin.scope.node, origin.store.name if origin.store is not None else ""
    if not isinstance(node, ast.FunctionDef) or not script.trace.sites(origin.scope):
        return None
    if any(isinstance(each, ast.Starred) for site in script.trace.sites(origin.scope) for each in site.node.args):
        return None
    if any(each.arg is None for site in script.trace.sites(origin.scope) for each in site.node.keywords):
        return None
    spec = node.args
    plain = [*spec.posonlyargs, *spec.args]
    pairs = [*zip(plain[len(plain) - len(spec.defaults) :], spec.defaults, strict=True)]
    named = [*zip(spec.kwonlyargs, spec.kw_defaults, strict=True)]
    value = next((value for each, value in (*pairs, *named) if each.arg == name), None)
    known = [each.node for each in script.trace.origins(value, origin.scope.parent or origin.scope)]
    return known[0] if len(known) == 1 else value


def comes_from(script: Script, node: ast.expr | None, scope: Scope, load: Call, deep: int = 0) -> bool:
    """Whether NODE is what LOAD returned, or an entry of it: checkpoint["model"], state.get("model")."""
    while (holder := _holder(node)) is not None:
        node = holder
    if node is load.node:
        return True
    for origin in script.trace.origins(node, scope):
        if origin.node is load.node:
            return True
        further = origin.node is not node and deep < _DEEP and _holder(origin.node) is not None
        if further and comes_from(script, origin.node, origin.scope, load, deep + 1):
            return True
    return False


def _holder(node: ast.expr | None) -> ast.expr | None:
    """What NODE takes an entry out of."""
    match node:
        case ast.Subscript(value=value):
            return value
        case ast.Call(func=ast.Attribute(value=value, attr="get" | "pop")):
            return value
    return None


def is_passing(script: Script, path: ast.expr | None, scope: Scope) -> bool:
    """Whether what is written or read there is gone with the process: a buffer, a temporary file."""
    calls = ((origin.call, origin.scope) for origin in script.trace.origins(path, scope))
    names = (script.names.resolve(call.func, inner) for call, inner in calls if call is not None)
    return any(name.startswith(("io.", "tempfile.")) and name != "io.open" for name in names) or (
        isinstance(path, ast.Attribute) and path.attr == "name" and is_passing(script, path.value, scope)
    )


def is_model(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    """Whether NODE plays a model; also the module itself in its own methods."""
    if isinstance(node, ast.Name) and node.id == scope.receiver and scope.host is not None:
        return "torch.nn.Module" in script.trace.bases(scope.host)
    return script.roles.plays(unwrapped(node), scope, "model")
