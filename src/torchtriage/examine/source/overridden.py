"""Which method a call on self runs, when classes below override it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.trace import Trace


class Overrides:
    """The methods of one file's classes that stand in for those of their bases."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @cached_property
    def _derived(self) -> dict[int, list[Scope]]:
        """The classes of the file that nothing derives from, by each class in their lineage."""
        classes = [each for each in self.trace.facts.scopes if each.kind == "class"]
        lines = [(each, self.trace.lineage(each)) for each in classes]
        bases = {id(base) for each, line in lines for base in line if base is not each}
        found: dict[int, list[Scope]] = {}
        for each, line in lines:
            if id(each) not in bases:
                for base in line:
                    found.setdefault(id(base), []).append(each)
        return found if bases else {}

    def methods(self, call: Call) -> list[Scope]:
        """The functions of this file that CALL may run: one, or of a method each form that some class gives it.

        A method that says nothing counts only where its class is used itself.
        """
        own = self.trace.definition(call.node.func, call.scope)
        if own is not None and own.kind != "function":
            return []
        host = call.scope.host
        found = [own] if own is not None else []
        if host is None or id(host) not in self._below or dotted(call.receiver) != call.scope.receiver:
            return found
        others = [self.trace.method(each, call.tail) for each in self._below[id(host)]]
        forms = list(dict.fromkeys(each for each in (own, *others) if each is not None))
        return [each for each in forms if len(forms) == 1 or not self._is_void(each)] or found

    def _is_void(self, method: Scope) -> bool:
        return is_hollow(method) and (method.host is None or method.host.name not in self.trace.facts.calls)

    @cached_property
    def _below(self) -> dict[int, list[Scope]]:
        """The classes that have another as their base, by that base."""
        found: dict[int, list[Scope]] = {}
        for each in self.trace.facts.scopes:
            if each.kind == "class" and isinstance(each.node, ast.ClassDef) and each.node.bases:
                for base in self.trace.lineage(each)[1:]:
                    found.setdefault(id(base), []).append(each)
        return found


def overriding(trace: Trace, method: Scope) -> Iterator[Scope]:
    """The methods of this file that take METHOD's place in a class which derives from its own."""
    if method.host is None:
        return
    for each in trace.facts.scopes:
        own = each.inner.get(method.name) if each.kind == "class" and each is not method.host else None
        if own is not None and method.host in trace.lineage(each):
            yield own


def is_hollow(method: Scope) -> bool:
    """Whether METHOD leaves what it does to the classes below: its body is pass, ... or raise."""
    body = getattr(method.node, "body", [])
    return isinstance(body, list) and all(_says_nothing(each) for each in body)


def _says_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Raise() | ast.Expr(value=ast.Constant()) | ast.Return(value=None | ast.Constant()):
            return True
    return False
