"""Containers that were there before a training step and keep what it puts into them."""

from __future__ import annotations

import ast
from functools import cached_property

from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.overridden import overriding
from torchtriage.examine.source.puts import Put, inner
from torchtriage.examine.source.steps import TrainingStep

_KNOWN = frozenset({"builtins", "collections", "torch", "queue", "types"})
_TAKES = frozenset({"clear", "pop", "popleft", "popitem"})


class Outliving:
    """What outlives one step."""

    def __init__(self, step: TrainingStep) -> None:
        self.step, self.script = step, step.script

    def outlives(self, put: Put, event: Event) -> bool:
        base, name = inner(put.container), dotted(inner(put.container))
        if not name or self.is_bounded(base, event.fact.scope) or self._is_foreign(put.container, event.fact.scope):
            return False
        if put.fact.scope is not self.step.ring.scope and any(overriding(self.script.trace, put.fact.scope)):
            return False
        if put.container is not base and not isinstance(put.fact, Call) and not put.is_sum:
            grows = isinstance(put.container, ast.Subscript) and self.is_new(put.container.slice)
            return grows and self.is_table(base, event.fact.scope) and self.is_outside(name, put, event)
        return self.is_outside(name, put, event)

    def _is_foreign(self, container: ast.expr, scope: Scope) -> bool:
        """Whether CONTAINER is an object of an imported class, which may take numbers out of what it is given."""
        ends = self.script.trace.origins(container, scope)
        names = [self.script.names.resolve(end.call.func, end.scope) for end in ends if end.call is not None]
        return any(name and name.partition(".")[0] not in _KNOWN for name in names)

    def is_outside(self, name: str, put: Put, event: Event) -> bool:
        """Whether the container was there before the step and the step does not begin it anew."""
        scope = event.fact.scope
        root, dot, _ = name.partition(".")
        if name == scope.receiver:
            return True
        if self._is_reset(name, put) or (dot and root != scope.receiver and self._is_reset(root, put)):
            return False
        return root == scope.receiver or self._is_older(root, scope)

    def _is_older(self, name: str, scope: Scope) -> bool:
        """Whether the variable NAME was there before the step."""
        home, ring = self.script.names.home(name, scope), self.step.ring
        if home is None or home is not ring.scope:  # a helper's own begins anew in every step, a closure's does not
            return home is not None and id(home) not in self._inside
        stores = [store for store in home.stores[name] if store.how not in ("import", "define")]
        if ring.is_loop:
            return any(ring.block not in store.path for store in stores)
        return any(store.how == "parameter" for store in stores)

    @cached_property
    def _inside(self) -> set[int]:
        """The functions that run in the step."""
        return {id(event.fact.scope) for event in self.step.events}

    def _is_reset(self, name: str, put: Put) -> bool:
        """A sum that is only set to zero now and then still holds the graphs of all steps in between."""
        for event in self.step.events:
            fact = event.fact
            if isinstance(fact, Call):
                again = fact.tail in _TAKES and dotted(fact.receiver) == name
            else:
                again = fact.name in (name, f"{name}[]") and fact.node is not put.node
                again = again and fact.how not in ("augment", "parameter")
                again = again and (not fact.name.endswith("[]") or fact.how == "delete")
            if again and not (put.is_sum and any(block.kind == "arm" for block in event.path)):
                return True
        return False

    def is_new(self, key: ast.expr) -> bool:
        """Whether KEY is another one in every step: made of what the step's loop counts, and not its remainder."""
        inside = list(ast.walk(key))
        if any(isinstance(each, ast.Mod) for each in inside):
            return False
        ring = self.step.ring.block
        facts = [event.fact for event in self.step.events]
        counted = {
            fact.name
            for fact in facts
            if isinstance(fact, Store) and (fact.how == "augment" or (fact.how == "element" and fact.block is ring))
        }
        made = {fact.name for fact in facts if isinstance(fact, Store) and fact.how == "assign"}
        return any(dotted(each) in counted | made for each in inside)

    def is_table(self, base: ast.expr, scope: Scope) -> bool:
        origins = self.script.trace.origins(base, scope)
        return any(isinstance(each.node, ast.Dict | ast.List | ast.ListComp) for each in origins)

    def is_bounded(self, base: ast.expr, scope: Scope) -> bool:
        """A deque(maxlen=…) lets go by itself."""
        calls = [each.call for each in self.script.trace.origins(base, scope) if each.call is not None]
        return any(dotted(call.func).endswith("deque") and (call.keywords or len(call.args) > 1) for call in calls)
