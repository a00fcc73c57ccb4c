"""Where a value comes from: through names, unpacking, self.x, helper functions and parameters of the same file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from torchtriage.examine.source.facts import Call, Facts, Scope, Store, dotted
from torchtriage.examine.source.names import Names

_DEPTH = 12
_SAME = frozenset({"to", "cuda", "cpu", "train", "eval", "float", "half", "double", "bfloat16", "requires_grad_"})


class Origin(Struct, frozen=True):
    """The end of a trace: an expression that is no name any more, and the store that gave it its last name.

    A parameter whose callers are unknown ends at its own store, with its annotation as the expression.
    """

    node: ast.expr | None
    scope: Scope
    store: Store | None = None

    @property
    def call(self) -> ast.Call | None:
        return self.node if isinstance(self.node, ast.Call) else None

    @property
    def is_parameter(self) -> bool:
        return self.store is not None and self.store.how == "parameter"


class Trace:
    """Follows the values of one file. Every answer is remembered, so asking twice costs nothing."""

    def __init__(self, facts: Facts, names: Names) -> None:
        self.facts, self.names = facts, names
        self._known: dict[tuple[int, int], tuple[Origin, ...]] = {}
        self._open: set[tuple[int, int]] = set()
        self._asked: set[int] = set()
        self._sites: dict[int, tuple[Call, ...]] = {}
        self._methods = {name for scope in facts.scopes if scope.kind == "class" for name in scope.inner}

    def origins(self, node: ast.expr | None, scope: Scope) -> tuple[Origin, ...]:
        """Every end at which the value of NODE may start, in the order of the file."""
        if node is None:
            return ()
        self.names.count()
        key = (id(node), id(scope))
        if key in self._known:
            return self._known[key]
        if key in self._open or len(self._open) > _DEPTH:
            return ()
        self._open.add(key)
        found = tuple(dict.fromkeys(self._follow(node, scope)))
        self._open.discard(key)
        if not self._open:  # a trace that was cut short inside a circle must not be remembered
            self._known[key] = found
        return found

    def _follow(self, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        match node:
            case ast.Name(id=name):
                yield from self._named(name, node, scope)
            case ast.Attribute():
                yield from self._attribute(node, scope)
            case ast.Call():
                yield from self._called(node, scope)
            case ast.IfExp(body=one, orelse=other):
                yield from (*self.origins(one, scope), *self.origins(other, scope))
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self.origins(value, scope)
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key))):
                yield from self._entry(node, value, key, scope)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                yield from self.origins(value, scope)
            case _:
                yield Origin(node, scope)

    def _named(self, name: str, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        stores = self.names.stores(name, scope)
        if not stores:
            yield Origin(node, scope)
        for store in stores:
            yield from self._stored(store)

    def _entry(self, node: ast.expr, value: ast.expr, key: str, scope: Scope) -> Iterator[Origin]:
        """What a dictionary that stands in this file, and is never written to, holds under KEY."""
        if dotted(value).rpartition(".")[2] in self._rewritten:
            yield Origin(node, scope)
            return
        held = [(self._under(each.node, key), each.scope) for each in self.origins(value, scope)]
        if not held or any(entry is None for entry, _ in held):
            yield Origin(node, scope)
            return
        for entry, home in held:
            yield from self.origins(entry, home)

    @cached_property
    def _rewritten(self) -> frozenset[str]:
        """The last words of everything whose entries are written, or that is updated, somewhere in the file."""
        written = (name[:-2] for scope in self.facts.scopes for name in scope.stores if name.endswith("[]"))
        updated = (
            dotted(call.receiver) for tail in ("update", "setdefault") for call in self.facts.calls.get(tail, ())
        )
        return frozenset(name.rpartition(".")[2] for name in (*written, *updated))

    def _under(self, node: ast.expr | None, key: str) -> ast.expr | None:
        match node:
            case ast.Dict(keys=keys, values=values):
                found = [v for k, v in zip(keys, values, strict=True) if isinstance(k, ast.Constant) and k.value == key]
                return found[-1] if found and None not in keys else None
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                return next((each.value for each in keywords if each.arg == key), None)
        return None

    def _stored(self, store: Store) -> Iterator[Origin]:
        if store.how == "parameter":
            yield from self._parameter(store)
        elif store.value is None or store.how == "element":
            yield Origin(None, store.scope, store)
        elif store.index is not None:
            yield from self._unpacked(store, store.value, store.index)
        else:
            for origin in self.origins(store.value, store.scope):
                yield Origin(origin.node, origin.scope, origin.store or store)

    def _unpacked(self, store: Store, value: ast.expr, index: int) -> Iterator[Origin]:
        if isinstance(value, ast.Tuple | ast.List):
            if index < len(value.elts):
                yield from self.origins(value.elts[index], store.scope)
            return
        helper = self.definition(value.func, store.scope) if isinstance(value, ast.Call) else None
        if helper is None or helper.kind != "function":
            yield Origin(None, store.scope, store)
            return
        for each in helper.returns:
            if isinstance(each.node.value, ast.Tuple) and index < len(each.node.value.elts):
                yield from self.origins(each.node.value.elts[index], helper)

    def _parameter(self, store: Store) -> Iterator[Origin]:
        function = store.scope
        given = [self._given(call, function, store.name) for call in self.sites(function)]
        for call, argument in given:
            yield from self.origins(argument, call.scope)
        if not any(argument is not None for _, argument in given):
            yield Origin(store.value, function, store)

    def _given(self, call: Call, function: Scope, name: str) -> tuple[Call, ast.expr | None]:
        words = [each.arg for each in function.parameters]
        bound = function.receiver in words[:1] and not (call.receiver is None and function.name != "__init__")
        return call, call.argument(name, words.index(name) - (1 if bound else 0))

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Iterator[Origin]:
        root, _, rest = dotted(node).partition(".")
        host = scope.host if root and root == scope.receiver else None
        for store in host.attributes.get(rest, ()) if host is not None else ():
            yield from self._stored(store)
        if host is None or rest not in host.attributes:
            yield Origin(node, scope)

    def _called(self, node: ast.Call, scope: Scope) -> Iterator[Origin]:
        match node.func:
            case ast.Attribute(value=value, attr=attr) if attr in _SAME and not self.names.resolve(node.func, scope):
                yield from self.origins(value, scope)
                return
        helper = self.definition(node.func, scope)
        if helper is None or helper.kind != "function" or not helper.returns:
            yield Origin(node, scope)
            return
        for each in helper.returns:
            yield from self.origins(each.node.value, helper)

    # functions and classes of the same file

    def definition(self, called: ast.expr, scope: Scope) -> Scope | None:
        """The function, method or class of this file that CALLED stands for."""
        match called:
            case ast.Name(id=name):
                return self.names.definition(name, scope)
            case ast.Attribute(value=value, attr=attr) if attr in self._methods:
                host = self.instance(value, scope)
                return self.method(host, attr) if host is not None else None
        return None

    def instance(self, node: ast.expr, scope: Scope) -> Scope | None:
        """The class of this file that NODE is, or is an instance of."""
        if isinstance(node, ast.Name) and node.id == scope.receiver and scope.host is not None:
            return scope.host
        if isinstance(node, ast.Name):
            named = self.names.definition(node.id, scope)
            if named is not None and named.kind == "class":
                return named
        for origin in self.origins(node, scope):
            made = self._maker(origin.call, origin.scope) if origin.call is not None else None
            if made is not None and made.kind == "class":
                return made
        return None

    def _maker(self, call: ast.Call, scope: Scope) -> Scope | None:
        """What CALL calls; None where that is asked already: in m = m.load() the maker is its own result."""
        if id(call) in self._asked:
            return None
        self._asked.add(id(call))
        found = self.definition(call.func, scope)
        self._asked.discard(id(call))
        return found

    def method(self, host: Scope, name: str) -> Scope | None:
        """The method NAME of the class HOST or of its bases in this file."""
        return next((base.inner[name] for base in self.lineage(host) if name in base.inner), None)

    def lineage(self, host: Scope) -> list[Scope]:
        """HOST and those of its bases that this file defines."""
        found = [host]
        for each in found:
            for base in each.node.bases if isinstance(each.node, ast.ClassDef) else ():
                scope = self.names.definition(base.id, each.parent or each) if isinstance(base, ast.Name) else None
                if scope is not None and scope.kind == "class" and scope not in found:
                    found.append(scope)
        return found

    def bases(self, host: Scope) -> set[str]:
        """The real names of all bases of HOST, through the classes of this file."""
        return {
            self.names.resolve(base, each.parent or each)
            for each in self.lineage(host)
            if isinstance(each.node, ast.ClassDef)
            for base in each.node.bases
        }

    def is_whole(self, host: Scope) -> bool:
        """Whether all methods of HOST are known: its own, those of classes of this file, and those of torch."""
        bases = [
            (base, each.parent or each)
            for each in self.lineage(host)
            if isinstance(each.node, ast.ClassDef)
            for base in each.node.bases
        ]
        own = {each.name for each in self.lineage(host)}
        names = (dotted(base) if dotted(base) in own else self.names.resolve(base, scope) for base, scope in bases)
        return all(name in own or name.partition(".")[0] in ("torch", "builtins", "abc", "typing") for name in names)

    def sites(self, function: Scope) -> tuple[Call, ...]:
        """The calls of FUNCTION in this file; of a class's __init__, the places where it is made."""
        if id(function) not in self._sites:
            self._sites[id(function)] = ()  # a circle of calls ends here
            made = function.name == "__init__" and function.host is not None
            name = function.host.name if made and function.host is not None else function.name
            target = function.host if made else function
            calls = self.facts.calls.get(name, ())
            self._sites[id(function)] = tuple(
                call for call in calls if self.definition(call.node.func, call.scope) is target
            )
        return self._sites[id(function)]
