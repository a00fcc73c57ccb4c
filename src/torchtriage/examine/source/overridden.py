"""Methods that a class of the same file overrides: what self.hook() in a base class runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.trace import Trace


class Overrides:
    """The subclasses of one file, by their bases in it."""

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

    def are_joined(self, one: Scope, other: Scope) -> bool:
        """Whether one object may be of both classes: derived from another, or a mixin beside it."""
        theirs = {id(each) for each in self._derived.get(id(other), ())}
        return any(id(each) in theirs for each in self._derived.get(id(one), ()))

    def run(self, called: ast.expr, method: Scope, scope: Scope) -> Scope:
        """What a call of the empty METHOD on the object itself runs, where all subclasses of the file agree."""
        if scope.host is None or not isinstance(called, ast.Attribute) or dotted(called.value) != scope.receiver:
            return method
        if not _is_empty(method):
            return method
        derived = self._derived.get(id(scope.host), ())
        found = {id(each): each for host in derived if (each := self.trace.method(host, method.name)) is not None}
        return next(iter(found.values())) if len(found) == 1 else method


def overriding(trace: Trace, method: Scope) -> Iterator[Scope]:
    """The methods of this file that take METHOD's place in a class which derives from its own."""
    if method.host is None:
        return
    for each in trace.facts.scopes:
        own = each.inner.get(method.name) if each.kind == "class" and each is not method.host else None
        if own is not None and method.host in trace.lineage(each):
            yield own


def _is_empty(method: Scope) -> bool:
    """Whether METHOD is there to be overridden: a docstring, pass, or raise NotImplementedError(…)."""
    body = getattr(method.node, "body", [])
    return all(
        isinstance(each, ast.Pass | ast.Raise) or (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))
        for each in body
    )
