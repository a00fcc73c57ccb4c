"""Follows values back to the models that they come from, and sees what has no gradient on the way."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import (
    DETACHING,
    INDEXED,
    LIKE_FACTORIES,
    METADATA,
    NEW_METHODS,
    VALUE_METHODS,
    ZERO_GRADIENTS,
)
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import last_words, symbols

DEEP, _MANY = 24, 600

# What gives no gradient at all, and what gives zero everywhere (by the last word).
NONE = names(home="method", returns="tensor", gradient="cut") - DETACHING - NEW_METHODS
ZERO = ZERO_GRADIENTS
# What leaves the graph on purpose, or gives no tensor.
_OUT = DETACHING | VALUE_METHODS | LIKE_FACTORIES
# Methods of tensors through which a gradient goes, or which data goes through.
_METHODS = names(home="method") | {"get", "items", "values"}
_WRAPPERS = frozenset({"enumerate", "tqdm", "trange", "iter", "islice", "track"})
_KNOWN = frozenset({"torch", "numpy", "builtins", "math"})


class Point(Struct, frozen=True):
    """An expression and where it is evaluated. given: what the parameters of its function are given, by name."""

    node: ast.expr
    scope: Scope
    at: Spot
    given: tuple[tuple[str, Point], ...] = ()
    deep: int = 0

    def of(self, node: ast.expr) -> Point:
        return replace(self, node=node, deep=self.deep + 1)


# A way from a loss back to a model: the operation that cuts it, or None where a gradient goes or may go.
Ways = Iterator["Point | None"]


def only(ways: Ways) -> Point | None:
    """The first cut, when all of WAYS are cut; the first that is not ends the search."""
    first = None
    for way in ways:
        if way is None:
            return None
        first = first or way
    return first


class Follower:
    """Follows an expression back to the models that it comes from. What it cannot see through lets a gradient go."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.open: set[int] = set()
        self.looks = 0

    def ways(self, spot: Point) -> Ways:
        self.looks += 1
        if spot.deep > DEEP or self.looks > _MANY:
            yield None
            return
        match spot.node:
            case ast.Constant() | ast.JoinedStr() | ast.Lambda():
                return
            case ast.Name(id=name):
                yield from self._named(name, spot)
            case ast.Attribute():
                yield from self._attribute(spot.node, spot)
            case ast.Call():
                yield from self._called(spot.node, spot)
            case ast.Compare():
                yield from self._cut(spot, [spot.node.left, *spot.node.comparators])
            case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=1)) if tail_of(call) in INDEXED:
                yield from self._cut(spot.of(call), self._operands(call, spot))
            case ast.Subscript(value=ast.Name(id=whole), slice=ast.Constant(value=str(key))) if self._entries(
                whole, key, spot
            ):
                for store, value in self._entries(whole, key, spot):
                    yield from self.ways(replace(spot, node=value, at=store, deep=spot.deep + 1))
            case node:
                parts = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
                yield from self._all(parts, spot)

    def _entries(self, whole: str, key: str, spot: Point) -> list[tuple[Store, ast.expr]]:
        """What WHOLE[KEY] was given in this function: by a store of its own, or where the dictionary was written."""
        stores = reaching(spot.scope.stores.get(f"{whole}.{key}", []), spot.at)
        made = reaching(spot.scope.stores.get(whole, []), spot.at) if not stores else []
        for store in made:
            if isinstance(store.value, ast.Dict) and store.how == "assign" and len(made) == 1:
                pairs = zip(store.value.keys, store.value.values, strict=True)
                return [(store, v) for k, v in pairs if isinstance(k, ast.Constant) and k.value == key]
        plain = all(each.how == "assign" and each.index is None for each in stores)
        return [(each, each.value) for each in stores if each.value is not None] if plain else []

    def _all(self, nodes: list[ast.expr], spot: Point) -> Ways:
        for node in nodes:
            yield from self.ways(spot.of(node))

    def _cut(self, spot: Point, operands: list[ast.expr]) -> Ways:
        """The first of the ways of OPERANDS, cut by SPOT where nothing has cut it before."""
        for way in self._all(operands, spot):
            yield way or spot
            return

    def _named(self, name: str, spot: Point) -> Ways:
        given = dict(spot.given).get(name)
        for store in reaching(self._stores(name, spot.scope), spot.at):
            if id(store) in self.open:
                continue
            self.open.add(id(store))
            try:
                if store.how != "parameter":
                    yield from self._stored(store, replace(spot, at=store, deep=spot.deep + 1))
                elif given is not None:
                    yield from self.ways(replace(given, deep=spot.deep + 1))
            finally:
                self.open.discard(id(store))
        if name not in spot.scope.stores and self.script.roles.plays(spot.node, spot.scope, "model"):
            yield None
        yield from self._filled(name, spot)

    def _stores(self, name: str, scope: Scope) -> list[Store]:
        return [store for store in scope.stores.get(name, []) if store.how != "import"]

    def _stored(self, store: Store, spot: Point) -> Ways:
        value = store.value
        if value is None or store.how in ("define", "delete", "enter"):
            return
        if store.how == "element" and self._is_data(value, spot.scope):
            return
        if store.how == "augment":
            yield from self.ways(spot.of(value))
            yield from self.ways(spot.of(ast.copy_location(ast.Name(store.name, ast.Load()), value)))
        elif store.index is not None and isinstance(value, ast.Tuple | ast.List):
            yield from self._all(value.elts[store.index : store.index + 1], spot)
        elif store.index == 1 and isinstance(value, ast.Call) and tail_of(value) in INDEXED:
            yield from self._cut(spot.of(value), self._operands(value, spot))
        else:
            yield from self.ways(spot.of(value))

    def _is_data(self, node: ast.expr, scope: Scope) -> bool:
        """Whether NODE is a loader, maybe inside of enumerate() or a progress bar."""
        while isinstance(node, ast.Call) and node.args and dotted(node.func).rpartition(".")[2] in _WRAPPERS:
            node = node.args[0]
        return self.script.roles.plays(node, scope, "loader")

    def _filled(self, name: str, spot: Point) -> Ways:
        """What comes into NAME later: x[mask] = …, outputs.append(…)."""
        values = [store.value for store in spot.scope.stores.get(f"{name}[]", ()) if store.value is not None]
        for call in spot.scope.calls:
            if call.tail in ("append", "extend", "add_", "copy_", "index_add_") and dotted(call.receiver) == name:
                values += call.arguments
        for _ in self._all(values, spot):
            yield None
            return

    def _attribute(self, node: ast.Attribute, spot: Point) -> Ways:
        host = spot.scope.host
        if node.attr in METADATA | {"data"}:
            return
        if self.script.roles.plays(node, spot.scope, "model"):
            yield None
        elif self.script.roles.plays(node, spot.scope, "loader"):
            return
        elif node.attr == "indices" and isinstance(node.value, ast.Call) and tail_of(node.value) in INDEXED:
            yield from self._cut(spot.of(node.value), self._operands(node.value, spot))
        elif host is not None and dotted(node.value) == spot.scope.receiver:
            stores = host.attributes.get(node.attr, [])
            plain = (ast.Constant, ast.Name)
            if any(each.how != "assign" or not isinstance(_whole(each), plain) for each in stores):
                yield None
        else:
            yield from self.ways(spot.of(node.value))

    def _operands(self, node: ast.Call, spot: Point) -> list[ast.expr]:
        """What a function of torch, or a method of a tensor, works on."""
        if self.script.names.resolve(node.func, spot.scope).partition(".")[0] in _KNOWN:
            return node.args[:1]
        return [node.func.value] if isinstance(node.func, ast.Attribute) else []

    def _called(self, node: ast.Call, spot: Point) -> Ways:
        tail, name = tail_of(node), self.script.names.resolve(node.func, spot.scope)
        own = None if tail in _OUT else self._own(node, spot)
        if tail in _OUT:
            return
        if own is not None:
            yield from self._through(own, node, spot)
        elif not self.script.roles.plays(node.func, spot.scope, "model"):
            yield from self._computed(node, tail, name, spot)
        elif self._is_frozen(node.func, spot):
            yield from self._all(_arguments(node), spot)
        elif not _is_without_gradient(spot.at):
            yield None

    def _is_frozen(self, model: ast.expr, spot: Point) -> bool:
        """Whether the parameters of MODEL are switched off as a whole: a gradient goes through it, and ends in none."""
        word, switched = dotted(model), list(self.script.calls("requires_grad_"))
        if not all([ast.unparse(each) for each in call.node.args] == ["False"] for call in switched):
            return False  # and on again, as in a GAN
        made = {id(store.value) for store in self.script.names.stores(word, spot.scope) if store.how == "assign"}
        return bool(word) and any(dotted(call.receiver) == word or id(call.node) in made for call in switched)

    def _computed(self, node: ast.Call, tail: str, name: str, spot: Point) -> Ways:
        """Through functions of torch, methods of tensors and criteria."""
        arguments, is_known = _arguments(node), name.partition(".")[0] in _KNOWN
        is_method = not name and isinstance(node.func, ast.Attribute)
        if tail in NONE | ZERO and (is_known or is_method):
            yield from self._cut(spot, self._operands(node, spot))
            for _ in () if is_known else self._all(arguments, spot):
                yield None
        elif is_known or self.script.roles.plays(node.func, spot.scope, "criterion"):
            yield from self._all(arguments, spot)
        elif isinstance(node.func, ast.Attribute) and is_method and tail in _METHODS:
            yield from self._all([node.func.value, *arguments], spot)
        else:
            yield None

    def _own(self, node: ast.Call, spot: Point) -> Scope | None:
        """The function of this file that NODE calls, or the forward of a loss of its own."""
        trace = self.script.trace
        function = trace.definition(node.func, spot.scope)
        if function is None and (host := trace.instance(node.func, spot.scope)) is not None:
            function = trace.method(host, "forward") if host.name.lower().endswith(("loss", "criterion")) else None
        is_seen = function is not None and function.kind == "function" and bool(function.returns)
        return function if is_seen and spot.deep < DEEP - 6 else None

    def _through(self, function: Scope, node: ast.Call, spot: Point) -> Ways:
        for end in self._ends(function, node, spot):
            yield from self.ways(end)

    def _ends(self, function: Scope, node: ast.Call, spot: Point) -> Iterator[Point]:
        """What FUNCTION returns, with its parameters as NODE gives them."""
        words = [each.arg for each in function.parameters]
        words = words[1:] if function.receiver in words[:1] else words
        given = [(word, spot.of(each)) for word, each in zip(words, node.args, strict=False)]
        given += [(each.arg, spot.of(each.value)) for each in node.keywords if each.arg]
        for end in function.returns:
            if end.node.value is not None:
                yield Point(end.node.value, function, end, tuple(given), spot.deep + 2)


def _is_without_gradient(at: Spot) -> bool:
    items = (item for block in at.path if isinstance(block.owner, ast.With) for item in block.owner.items)
    words = {dotted(node).rpartition(".")[2] for item in items for node in ast.walk(item.context_expr)}
    return bool(words & last_words(symbols().grad_free))


def _whole(store: Store) -> ast.expr | None:
    """What STORE gives its name: of a, b = x, y the part at its place."""
    if store.index is not None and isinstance(store.value, ast.Tuple) and store.index < len(store.value.elts):
        return store.value.elts[store.index]
    return store.value


def _arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(keyword.value for keyword in node.keywords)]


def tail_of(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


def word_of(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return "a comparison"
    return f"the index of {tail_of(node)}()" if tail_of(node) in INDEXED else f"{tail_of(node)}()"
