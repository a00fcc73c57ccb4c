"""Where a value comes from: through names, unpacking, self.x, helper functions and parameters of the same file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from torchtriage.examine.source.contents import Contents
from torchtriage.examine.source.definitions import Origin
from torchtriage.examine.source.facts import Call, Scope, Store
from torchtriage.examine.source.torch_api.symbols import symbols

_DEPTH = 12
_SAME = symbols().module_self


class Trace(Contents):
    """Follows the values of one file. Every answer is remembered, so asking twice costs nothing."""

    def origins(self, node: ast.expr | None, scope: Scope) -> tuple[Origin, ...]:
        """Every end at which the value of NODE may start, in the order of the file."""
        if node is None:
            return ()
        self.names.count()
        key = (id(node), id(scope))
        if key in self._known:
            return self._known[key]
        if key in self._draft or key in self._open or len(self._open) > _DEPTH:
            self._cuts += 1
            return self._draft.get(key, ())
        before = self._cuts
        self._open.add(key)
        found = tuple(dict.fromkeys(self._follow(node, scope)))
        self._open.discard(key)
        (self._known if self._is_uncut(before) else self._draft)[key] = found
        return found

    def _follow(self, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        match node:
            case ast.Name(id=name):
                yield from self._named(name, node, scope)
            case ast.Attribute(value=value, attr=key):
                yield from self._held(node, value, key, scope)
            case ast.Call():
                yield from self._called(node, scope)
            case ast.IfExp(body=one, orelse=other):
                yield from (*self.origins(one, scope), *self.origins(other, scope))
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self.origins(value, scope)
            case ast.Subscript(value=value, slice=ast.Constant(value=str() | int() as key)):
                yield from self._held(node, value, key, scope)
            case ast.Subscript(value=value, slice=ast.Name() | ast.Attribute()):
                ends = (end for each, home in self._contents(value, scope) for end in self.origins(each, home))
                made = [end for end in ends if end.call is not None]  # of plain values, which one is the question
                yield from made or [Origin(node, scope)]
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                yield from self.origins(value, scope)
            case _:
                yield Origin(node, scope)

    def _named(self, name: str, node: ast.expr, scope: Scope) -> Iterator[Origin]:
        bound = self.facts.bound.get(id(node))
        stores = [bound] if bound is not None else self.names.stores(name, scope)
        if not stores:
            yield Origin(node, scope)
        for store in stores:
            yield from self._stored(store)

    def _stored(self, store: Store) -> Iterator[Origin]:
        if store.how == "parameter":
            yield from self._parameter(store)
        elif store.value is None:
            yield Origin(None, store.scope, store)
        elif store.how == "element":
            yield from self._element(store, store.value)
        elif store.index is not None:
            yield from self._unpacked(store, store.value, store.index)
        else:
            for origin in self.origins(store.value, store.scope):
                yield Origin(origin.node, origin.scope, origin.store or store)

    def _parameter(self, store: Store) -> Iterator[Origin]:
        function = store.scope
        given = [self._given(call, function, store.name) for call in self.sites(function)]
        for call, argument in given:
            yield from self.origins(argument, call.scope)
        if not any(argument is not None for _, argument in given):
            yield Origin(store.value, function, store)

    def _given(self, call: Call, function: Scope, name: str) -> tuple[Call, ast.expr | None]:
        words = [each.arg for each in function.parameters]
        bound = function.receiver in words[:1] and (
            call.receiver is not None or function.name in ("__init__", "__call__")
        )
        return call, call.argument(name, words.index(name) - (1 if bound else 0))

    def _called(self, node: ast.Call, scope: Scope) -> Iterator[Origin]:
        match node.func:
            case ast.Attribute(value=value, attr=attr) if attr in _SAME and not self.names.resolve(node.func, scope):
                yield from self.origins(value, scope)
                return
            case ast.Attribute(value=ast.Call() as made, attr="apply" | "share_memory"):  # Net().apply(weights_init)
                yield from self.origins(made, scope)
                return
        helper = self.definition(node.func, scope)
        if helper is None and (bodies := self._anonymous(node.func, scope)):
            for body, inside in bodies:
                yield from self.origins(body, inside)
            return
        if helper is None or helper.kind != "function" or not helper.returns:
            yield Origin(node, scope)
            return
        for each in helper.returns:
            yield from self.origins(each.node.value, helper)

    @cached_property
    def _lambdas(self) -> dict[int, Scope]:
        return {id(scope.node): scope for scope in self.facts.scopes if scope.kind == "lambda"}

    def _anonymous(self, called: ast.expr, scope: Scope) -> list[tuple[ast.expr, Scope]]:
        """The bodies of the lambdas that CALLED is a name of, where it is nothing else."""
        if not self._lambdas or not isinstance(called, ast.Name | ast.Attribute) or self.names.resolve(called, scope):
            return []
        ends = [origin.node for origin in self.origins(called, scope)]
        known = [
            (each.body, self._lambdas[id(each)])
            for each in ends
            if isinstance(each, ast.Lambda) and id(each) in self._lambdas
        ]
        return known if len(known) == len(ends) else []
