"""Module classes with their methods at hand: what is built in __init__, and what runs in forward."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.classes import ModuleClass, modules
from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

_NO_MODULES = symbols().parameters


class Net(Struct, eq=False, dict=True):
    """A subclass of nn.Module. methods: by name, without static ones."""

    script: Script
    scope: Scope
    methods: dict[str, Scope] = {}

    @cached_property
    def bases(self) -> set[str]:
        return self.script.trace.bases(self.scope)

    @property
    def init(self) -> Scope | None:
        """Its own constructor."""
        return self.methods.get("__init__")

    @cached_property
    def building(self) -> tuple[Event, ...]:
        """What the constructor evaluates, in order, with the functions of this file written out."""
        return self._events(self.init)

    @cached_property
    def running(self) -> tuple[Event, ...]:
        """What forward evaluates, in order, with the functions of this file written out."""
        return self._events(self.methods.get("forward"))

    def calls(self, *tails: str) -> Iterator[Call]:
        """The calls in its methods whose last word is one of TAILS."""
        yield from (call for tail in tails for call in self.script.calls(tail) if call.scope.host is self.scope)

    def stores(self, name: str) -> list[Store]:
        """The stores to self.NAME."""
        return self.scope.attributes.get(name, [])

    def is_own(self, node: ast.AST, name: str, scope: Scope) -> bool:
        """Whether NODE is self.NAME."""
        return bool(scope.receiver) and dotted(node) == f"{scope.receiver}.{name}"

    def foreign(self, name: str) -> set[int]:
        """The ids of the nodes self.NAME in the methods of modules that have nothing to do with this one."""
        trace, family = self.script.trace, self.script.trace.lineage(self.scope)
        return {
            id(node)
            for scope in self.script.facts.scopes
            if scope.kind == "function" and scope.host is not None and scope.host not in family
            if self.scope not in trace.lineage(scope.host)
            for node in ast.walk(scope.node)
            if isinstance(node, ast.Attribute) and self.is_own(node, name, scope)
        }

    def relatives(self, calls: Iterable[Call]) -> Iterator[Call]:
        """Those of CALLS that do not stand in modules that have nothing to do with this one."""
        family = self.script.trace.lineage(self.scope)
        for call in calls:
            host = call.scope.host
            if host is None or host in family or self.scope in self.script.trace.lineage(host):
                yield call

    def _events(self, method: Scope | None) -> tuple[Event, ...]:
        return self.script.written.events(Ring(method.body, method)) if method is not None else ()


@view(Net, of=Script)
def nets(script: Script) -> tuple[Net, ...]:
    found = {id(each.scope): Net(script, each.scope) for each in modules(script) if not _is_parameter(each)}
    for scope in script.facts.scopes if found else ():
        if scope.kind == "function" and scope.parent is scope.host and id(scope.host) in found:
            found[id(scope.host)].methods.setdefault(scope.name, scope)
    return tuple(found.values())


def _is_parameter(module: ModuleClass) -> bool:
    return not _NO_MODULES.isdisjoint(module.script.trace.bases(module.scope))


def chain(node: ast.expr | None) -> tuple[ast.expr | None, tuple[str, ...]]:
    """The innermost receiver of a chain of method calls and subscripts, and the methods: make(a).to(b)[0] → make(a)."""
    methods: list[str] = []
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call() | ast.BinOp() | ast.Subscript() as inner, attr=attr)):
                methods.append(attr)
                node = inner
            case ast.Subscript(value=inner):
                node = inner
            case _:
                return node, tuple(reversed(methods))
