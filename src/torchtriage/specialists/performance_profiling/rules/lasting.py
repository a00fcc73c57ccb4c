"""What outlives the turns of a loop: the same thing in each of them, by its origins."""

from __future__ import annotations

import ast

from torchtriage.examine.source.events import Event, Ring
from torchtriage.examine.source.facts import Block, Scope, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep

_SOMETIMES = frozenset({"arm", "handler", "loop"})


class Turns:
    """What every turn of one loop makes and stores, the functions that it calls included."""

    def __init__(self, script: Script, ring: Ring) -> None:
        self.script, self.ring = script, ring
        self.events = script.written.events(ring)
        self._facts = {id(event.fact) for event in self.events}
        self._made = {id(event.call.node) for event in self.events if event.call is not None}

    def outlives(self, node: ast.expr | None, scope: Scope, but: ast.Call | None = None) -> bool:
        """Whether NODE surely is the same thing in each turn: it has origins, and none of them lies in the loop.

        BUT: a call whose own result is no other thing: model = torch.compile(model).
        """
        origins = [each for each in self.script.trace.origins(node, scope) if but is None or each.node is not but]
        return bool(origins) and not any(
            id(origin.node) in self._made
            or (origin.store is not None and origin.call is None and id(origin.store) in self._facts)
            for origin in origins
        )

    def inside(self, event: Event) -> tuple[Block, ...]:
        """The blocks of the turn that lead to EVENT."""
        path = event.path
        return path[path.index(self.ring.block) + 1 :] if self.ring.block in path else path


def _recurs(owner: ast.AST) -> bool:
    """Whether OWNER is as `if step >= start and step % 4 == 0:`."""
    if not isinstance(owner, ast.If):
        return False
    parts = (
        owner.test.values if isinstance(owner.test, ast.BoolOp) and isinstance(owner.test.op, ast.And) else [owner.test]
    )
    return all(_is_recurrent(each) for each in parts)


def _is_recurrent(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.BinOp(op=ast.Mod()), ops=[ast.Eq()]):
            return True
        case ast.Compare(
            left=ast.Name() | ast.Attribute() | ast.Call(func=ast.Name(id="len")), ops=[ast.GtE() | ast.Gt()]
        ):
            return True
    return False


def line(step: TrainingStep) -> int:
    return int(getattr(step.ring.block.owner, "lineno", 0))


def turn(step: TrainingStep) -> str:
    """A loop over something has a batch in each turn; one that only counts, or waits for an end, has a step."""
    owner = step.ring.block.owner
    counts = isinstance(owner, ast.For) and isinstance(owner.iter, ast.Call) and dotted(owner.iter.func) == "range"
    return "step" if counts or isinstance(owner, ast.While) else "batch"
