"""A piece of code written out: everything that it evaluates, with the functions of the file put in where they run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from torchtriage.examine.source.exits import Exits, Run
from torchtriage.examine.source.facts import Action, Block, Call, Scope, Store
from torchtriage.examine.source.names import Names
from torchtriage.examine.source.overridden import Overrides
from torchtriage.examine.source.trace import Trace

_DEEP, _MANY = 4, 4000


class Event(Struct, frozen=True):
    """A call or store where the code meets it; path leads there through the blocks of all functions on the way."""

    fact: Action
    path: tuple[Block, ...]
    order: int

    @property
    def call(self) -> Call | None:
        return self.fact if isinstance(self.fact, Call) else None


class Ring(Struct, frozen=True):
    """A loop, or the body of a function: a block, and the scope it stands in."""

    block: Block
    scope: Scope

    @property
    def is_loop(self) -> bool:
        return self.block.kind == "loop"

    @property
    def runs_once(self) -> bool:
        """Whether it says by itself that it turns only once: for _ in range(1), or a body that ends with break."""
        match self.block.owner:
            case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=1)])):
                return True
            case ast.For(body=body) | ast.AsyncFor(body=body) | ast.While(body=body):
                return isinstance(body[-1], ast.Break | ast.Return)
        return False


class Written:
    """The events of one file's rings, each written once; calls are followed four functions deep."""

    def __init__(self, names: Names, trace: Trace) -> None:
        self.names, self.trace, self.overrides = names, trace, Overrides(trace)
        self._known: dict[int, tuple[Event, ...]] = {}

    def events(self, ring: Ring) -> tuple[Event, ...]:
        """Everything that RING evaluates, in order."""
        key = id(ring.block)
        if key not in self._known:
            actions = (action for action in ring.scope.actions if ring.block in action.path)
            written: list[Event] = []
            self._write(actions, (), (ring.scope,), written, ring.block.path)
            self._known[key] = tuple(written)
        return self._known[key]

    def function(self, node: ast.expr, scope: Scope) -> Scope | None:
        """The function of this file that the name NODE stands for."""
        found = self.names.definition(node.id, scope) if isinstance(node, ast.Name) else None
        return found if found is not None and found.kind == "function" else None

    def _write(
        self,
        actions: Iterable[Action],
        way: tuple[Block, ...],
        through: tuple[Scope, ...],
        out: list[Event],
        outside: Sequence[Block] = (),
    ) -> None:
        exits = Exits(self.trace, outside)
        for action in actions:
            for run in exits.met(action):
                self._run(run, way, through, out)
            path = way + action.path
            for helper, inside in self._helpers(action):
                if helper not in through and len(through) <= _DEEP and len(out) < _MANY:
                    start = exits.start(action, helper) if isinstance(action, Call) else ()
                    self._write(start, path + inside, (*through, helper), out)
            out.append(Event(action, path, len(out)))
        for run in exits.rest():
            self._run(run, way, through, out)

    def _run(self, run: Run, way: tuple[Block, ...], through: tuple[Scope, ...], out: list[Event]) -> None:
        scope, actions, path = run
        if scope not in through and len(through) <= _DEEP and len(out) < _MANY:
            self._write(actions, way + path, (*through, scope), out)

    def _helpers(self, action: Action) -> Iterator[tuple[Scope, tuple[Block, ...]]]:
        """The functions of this file that a call runs: closures that it is given, and its own.

        Of the forms of a method that classes override, one runs: these stand in blocks that exclude each other.
        """
        if isinstance(action, Store):
            return
        for argument in action.arguments:
            if (closure := self.function(argument, action.scope)) is not None:
                yield closure, ()
        forms = self.overrides.methods(action)
        for each in forms:
            yield each, (Block("arm", action.node),) if len(forms) > 1 else ()
