"""What names, attributes and elements stand for, each with the place where it is evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from msgspec import Struct

from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.script import Script

DEEP = 16


class Part(Struct, frozen=True):
    """An expression and where it is evaluated; at: None where every store may have come before."""

    node: ast.expr
    scope: Scope
    at: Spot | None


class Parts:
    """Follows expressions in order: where two stores to a name stand, the one that is seen from there counts."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def ways(self, part: Part, deep: int = 0) -> list[Part]:
        """What a name, an attribute or an element stands for; the part itself where that is not seen."""
        node, found = part.node, list[Part | None]()
        match node:
            case ast.Name():
                found = [each for store in self._stores(part) for each in self._stored(store, deep)]
            case ast.Attribute(value=ast.Name(id=root), attr=name) if root == part.scope.receiver and part.scope.host:
                lineage = self.script.trace.lineage(part.scope.host)
                stores = next((each.attributes[name] for each in lineage if name in each.attributes), None)
                stores = stores or next((each.stores[name] for each in lineage if name in each.stores), [])
                found = [each for store in stores for each in self._stored(store, deep)]
            case ast.Subscript(value=value, slice=ast.Constant(value=int(place))):
                parts = self.elements(Part(value, part.scope, part.at), deep + 1)
                inside = parts is not None and -len(parts) <= place < len(parts)
                found = [parts[place]] if parts is not None and inside else []
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
                found = [self._entry(each, key) for each in self.ways(Part(value, part.scope, part.at), deep + 1)]
        return [each for each in found if each is not None] if found and None not in found else [_unknown(part)]

    def _stores(self, part: Part) -> list[Store]:
        name = part.node.id if isinstance(part.node, ast.Name) else ""
        stores = [each for each in self.script.names.stores(name, part.scope) if each.how != "augment"]
        is_here = part.at is not None and name in part.scope.stores
        return reaching(stores, part.at) if is_here and part.at is not None else stores

    def _stored(self, store: Store, deep: int) -> Iterator[Part | None]:
        value = store.value
        if store.how == "parameter":
            yield from self._given(store)
        elif value is None or deep > DEEP or store.how not in ("assign", "element"):
            yield None
        elif store.how == "assign" and store.index is None:
            yield Part(value, store.scope, store)
        else:
            parts = self.elements(Part(value, store.scope, store), deep + 1)
            if parts is None or (store.how == "element" and store.index is not None):
                yield None
            elif store.how == "element":
                yield from parts
            else:
                inside = store.index is not None and store.index < len(parts)
                yield parts[store.index] if inside and store.index is not None else None

    def _given(self, store: Store) -> Iterator[Part | None]:
        """What the callers give a parameter; what the fixture of that name makes; its default."""
        function = store.scope
        sites = self.script.trace.sites(function)
        words = [each.arg for each in function.parameters]
        skip = 1 if function.receiver in words[:1] else 0
        for call in sites:
            argument = call.argument(store.name, words.index(store.name) - skip)
            yield Part(argument, call.scope, call) if argument is not None else default(store)
        if not sites:
            maker = self.script.facts.scopes[0].inner.get(store.name)
            yield from made(maker) if maker is not None and _is_fixture(maker) else (default(store),)

    def _entry(self, part: Part, key: str) -> Part | None:
        helper = self.script.trace.definition(part.node.func, part.scope) if isinstance(part.node, ast.Call) else None
        given = list(made(helper)) if helper is not None and helper.kind == "function" else []
        part = given[0] if len(given) == 1 and given[0] is not None else part
        match part.node:
            case ast.Dict(keys=keys, values=values):
                for name, value in zip(keys, values, strict=True):
                    if isinstance(name, ast.Constant) and name.value == key:
                        return Part(value, part.scope, part.at)
            case ast.Call(func=ast.Name(id="dict"), keywords=named):
                return next((Part(each.value, part.scope, part.at) for each in named if each.arg == key), None)
        return None

    def elements(self, part: Part, deep: int = 0) -> list[Part] | None:
        """The elements of a tuple or list, as far as they are written out; None for anything else."""
        found: list[Part] | None = None
        match part.node if deep <= DEEP else None:
            case ast.Tuple(elts=nodes) | ast.List(elts=nodes):
                found = self._written(nodes, part, deep)
            case ast.ListComp(elt=each) | ast.GeneratorExp(elt=each):
                found = [Part(each, part.scope, part.at)] * 4  # any number of the same kind
            case ast.Call(func=ast.Name(id="tuple" | "list"), args=[inner]):
                found = self.elements(Part(inner, part.scope, part.at), deep + 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                one, other = (self.elements(Part(each, part.scope, part.at), deep + 1) for each in (left, right))
                found = None if one is None or other is None else [*one, *other]
            case ast.Call(func=called):
                helper = self.script.trace.definition(called, part.scope)
                given = list(made(helper)) if helper is not None and helper.kind == "function" else []
                found = self.elements(given[0], deep + 1) if len(given) == 1 and given[0] is not None else None
            case ast.Name() | ast.Attribute() | ast.Subscript():
                ways = self.ways(part, deep + 1)
                found = self.elements(ways[0], deep + 1) if ways and ways[0].node is not part.node else None
        return found

    def _written(self, nodes: Iterable[ast.expr], part: Part, deep: int) -> list[Part]:
        found: list[Part] = []
        for node in nodes:
            inner = node.value if isinstance(node, ast.Starred) else None
            parts = self.elements(Part(inner, part.scope, part.at), deep + 1) if inner is not None else None
            found += parts if parts is not None else [Part(node, part.scope, part.at)]
        return found


def _unknown(part: Part) -> Part:
    """A part whose precision is not seen."""
    return Part(ast.Set([]), part.scope, part.at)


def made(function: Scope) -> Iterator[Part | None]:
    """What FUNCTION returns or yields."""
    for each in function.returns:
        yield Part(each.node.value, function, each) if each.node.value is not None else None
    if not function.returns:
        yields = (node for node in ast.walk(function.node) if isinstance(node, ast.Yield))
        yield from (Part(each.value, function, None) if each.value is not None else None for each in yields)


def _is_fixture(function: Scope) -> bool:
    marks = function.node.decorator_list if isinstance(function.node, ast.FunctionDef) else []
    called = (each.func if isinstance(each, ast.Call) else each for each in marks)
    return any(dotted(each).rpartition(".")[2] == "fixture" for each in called)


def default(store: Store) -> Part | None:
    node = store.scope.node
    if not isinstance(node, ast.FunctionDef):
        return None
    plain = [*node.args.posonlyargs, *node.args.args]
    pairs = [*zip(reversed(plain), reversed(node.args.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None]
    found = next((default for each, default in pairs if each.arg == store.name), None)
    return Part(found, store.scope.parent or store.scope, None) if found is not None else None
