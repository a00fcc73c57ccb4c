"""What an expression may be at one place of the code: names followed by the order in which they are given values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.facts import Block, Call, Return, Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching, surely
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

_DEEP = 8
_OFF = symbols().grad_free
_WRAPPERS = symbols().transparent_wrappers


class Value(Struct, frozen=True):
    """An expression in its scope and at its place; store: what gave it its last name; index: which part of it."""

    node: ast.expr
    scope: Scope
    spot: Spot
    store: Store | None = None
    index: int | None = None

    def at(self, node: ast.expr) -> Value:
        """A part of this expression, at the same place."""
        return Value(node, self.scope, self.spot)


def values(script: Script, value: Value, deep: int = 0) -> list[Value] | None:
    """Everything that VALUE may be there, no names any more; None when not all of it can be known."""
    if isinstance(value.node, ast.IfExp) and deep <= _DEEP:
        ways = [values(script, value.at(each), deep + 1) for each in (value.node.body, value.node.orelse)]
        return [each for way in ways for each in way or ()] if None not in ways else None
    if not isinstance(value.node, ast.Name):
        return [value]
    stores = script.names.stores(value.node.id, value.scope)
    if not stores or deep > _DEEP or any(store.scope is not value.scope for store in stores):
        return None
    found: list[Value] = []
    for store in reaching(stores, value.spot):
        given = _given(script, store, deep)
        if given is None:
            return None
        found += given
    return found or None


def _given(script: Script, store: Store, deep: int) -> list[Value] | None:
    if store.how == "parameter":
        return _passed(script, store, deep)
    if store.how != "assign" or store.value is None:
        return None
    if store.index is None:
        if isinstance(store.value, ast.Name):
            return values(script, Value(store.value, store.scope, store), deep + 1)
        return [Value(store.value, store.scope, store, store)]
    if isinstance(store.value, ast.Tuple | ast.List):
        part = store.value.elts[store.index] if store.index < len(store.value.elts) else None
        return values(script, Value(part, store.scope, store, store), deep + 1) if part is not None else None
    return [Value(store.value, store.scope, store, store, store.index)]


def _passed(script: Script, store: Store, deep: int) -> list[Value] | None:
    words = [each.arg for each in store.scope.parameters]
    place = words.index(store.name) - (1 if store.scope.receiver in words[:1] else 0)
    found: list[Value] = []
    for call in sites(script, store.scope):
        argument = call.argument(store.name, place)
        given = values(script, Value(argument, call.scope, call), deep + 1) if argument is not None else None
        if given is None:
            return None
        found += given
    return found or None


def sites(script: Script, function: Scope) -> tuple[Call, ...]:
    """The calls of FUNCTION in this file; of a module's forward and of __call__, those of its instances."""
    found = script.trace.sites(function)
    if function.name not in ("forward", "__call__") or function.host is None:
        return found
    return (*found, *(run.call for run in runs(script) if run.host is function.host))


class Run(Struct, frozen=True):
    """A call of an instance of a class of this file."""

    call: Call
    host: Scope


@view(Run, of=Script)
def runs(script: Script) -> Iterator[Run]:
    for calls in script.facts.calls.values():
        for call in calls:
            if call.arguments and not script.name(call) and not script.trace.definition(call.node.func, call.scope):
                hosts = [
                    script.trace.definition(m.func, s) for m, s in constructions(script, call.node.func, call.scope)
                ]
                if hosts and hosts[0] is not None and all(host is hosts[0] for host in hosts):
                    yield Run(call, hosts[0])


def returned(script: Script, call: Value) -> list[Value] | None:
    """What a call of a function of this file, or of a model whose class it holds, may give back; None if not known."""
    if not isinstance(call.node, ast.Call):
        return None
    functions = _functions(script, call.node.func, call.scope)
    if not functions or any(not function.returns for function in functions):
        return None
    found: list[Value] = []
    for function in functions:
        for each in function.returns:
            given = _part(script, each, function, call.index)
            if given is None:
                return None
            found += given
    return found


def entries(script: Script, value: Value, key: str) -> list[Value] | None:
    """What VALUE, a dict that is written in this file, holds under KEY; None if not known."""
    put = _put(value, key)
    if put is not None:
        return values(script, put)
    found: list[Value] = []
    for each in _dicts(script, value) or ():
        given = _entry(script, each, key)
        if given is None:
            return None
        found += given
    return found or None


def _put(value: Value, key: str) -> Value | None:
    """What a statement of the same function puts under KEY, when one does and surely before."""
    name = value.node.id if isinstance(value.node, ast.Name) else ""
    puts = value.scope.stores.get(f"{name}[]", []) if name else []
    keys = {id(store): _keys(store) for store in puts}
    if any(None in each for each in keys.values()):
        return None
    own = [store for store in puts if key in keys[id(store)]]
    if len(own) != 1 or own[0].value is None or own[0].index is not None or not surely(own[0], value.spot):
        return None
    return Value(own[0].value, own[0].scope, own[0], own[0])


def _keys(store: Store) -> list[object]:
    """The keys that an assignment to entries names; None for one that is computed."""
    targets = store.node.targets if isinstance(store.node, ast.Assign) else []
    slices = [each.slice for each in targets if isinstance(each, ast.Subscript)]
    return [each.value if isinstance(each, ast.Constant) else None for each in slices] or [None]


def _dicts(script: Script, value: Value) -> list[Value] | None:
    if dotted(value.node) and not isinstance(value.node, ast.Name):
        ends = script.trace.origins(value.node, value.scope)
        whole = [end for end in ends if isinstance(end.node, ast.Dict) and end.store is not None]
        return (
            [Value(e.node, e.scope, e.store, e.store) for e in whole if e.node and e.store]
            if whole == [*ends]
            else None
        )
    found: list[Value] = []
    for each in values(script, value) or ():
        found += (returned(script, each) or [each]) if isinstance(each.node, ast.Call) else [each]
    return found or None


def _entry(script: Script, value: Value, key: str) -> list[Value] | None:
    name = value.store.name if value.store is not None else ""
    puts = value.scope.stores.get(f"{name}[]", []) if name else []
    if puts or not isinstance(value.node, ast.Dict) or None in value.node.keys:
        return None
    pairs = zip(value.node.keys, value.node.values, strict=True)
    found = [given for word, given in pairs if isinstance(word, ast.Constant) and word.value == key]
    return values(script, value.at(found[-1])) if found else None


def _part(script: Script, each: Return, function: Scope, index: int | None) -> list[Value] | None:
    node = each.node.value
    if index is not None:
        whole = isinstance(node, ast.Tuple) and index < len(node.elts)
        node = node.elts[index] if whole and isinstance(node, ast.Tuple) else None
    return values(script, Value(node, function, each)) if node is not None else None


def _functions(script: Script, called: ast.expr, scope: Scope) -> list[Scope]:
    """What CALLED runs: a function, or the forward of every model that it may be; nothing when one is hidden."""
    own = script.trace.definition(called, scope)
    if own is not None:
        return [own] if own.kind == "function" and not _is_replaceable(script, own) else []
    if scope.host is not None and dotted(called) == scope.receiver:  # self(x), in a module's own method
        own = script.trace.method(scope.host, "forward")
        return [own] if own is not None and not _is_replaceable(script, own) else []
    found = []
    for made, where in constructions(script, called, scope):
        host = script.trace.definition(made.func, where)
        forward = script.trace.method(host, "forward") if host is not None and host.kind == "class" else None
        if forward is None:
            return []
        found.append(forward)
    return found


def _is_replaceable(script: Script, function: Scope) -> bool:
    """Whether a subclass, here or elsewhere, may run something else under this name: only when it is abstract."""
    body = function.node.body if isinstance(function.node, ast.FunctionDef) else []
    return any(isinstance(each, ast.Raise) for each in body) or any(
        function.name in scope.inner and function.host in script.trace.lineage(scope)[1:] for scope in script.classes
    )


def constructions(script: Script, node: ast.expr, scope: Scope) -> list[tuple[ast.Call, Scope]]:
    """The constructor calls that NODE comes from, wrappers such as DistributedDataParallel taken off; [] if unsure."""
    found = []
    for origin in script.trace.origins(node, scope):
        call, where = origin.call, origin.scope
        if call is None:
            return []
        if script.names.resolve(call.func, where) in _WRAPPERS and call.args:
            inner = constructions(script, call.args[0], where) if call.args[0] is not node else []
            if not inner:
                return []
            found += inner
        else:
            found.append((call, where))
    return found


def is_off(script: Script, path: tuple[Block, ...], scope: Scope) -> bool:
    """Whether no graph is recorded there: under no_grad or inference_mode, or in a function decorated with them."""
    return any(_is_off(script, each, scope) for each in _entered(path)) or any(
        _is_off(script, each, scope)
        for each in (scope.node.decorator_list if isinstance(scope.node, ast.FunctionDef) else ())
    )


def _entered(path: tuple[Block, ...]) -> Iterator[ast.expr]:
    for block in path:
        if block.kind == "with" and isinstance(block.owner, ast.With):
            yield from (item.context_expr for item in block.owner.items)


def _is_off(script: Script, node: ast.expr, scope: Scope) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    name = script.names.resolve(called, scope)
    if name == "torch.set_grad_enabled" and isinstance(node, ast.Call):
        return bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value is False
    return name in _OFF and not (isinstance(node, ast.Call) and (node.args or node.keywords))


def use(call: Call, node: ast.expr) -> Value:
    """NODE, an argument of CALL or what it is called on."""
    return Value(node, call.scope, call)


def default(scope: Scope, name: str) -> ast.expr | None:
    """The default of the parameter NAME."""
    if not isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    notes = scope.node.args
    named = [*notes.posonlyargs, *notes.args]
    pairs = [
        *zip(reversed(named), reversed(notes.defaults), strict=False),
        *zip(notes.kwonlyargs, notes.kw_defaults, strict=True),
    ]
    return next((default for each, default in pairs if each.arg == name), None)
