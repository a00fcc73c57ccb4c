"""Graphs that are marked step by step, and those of them that outlive their step."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

if TYPE_CHECKING:
    from .events import Graphs

TOLD = 200  # counts that are written down: an epoch after which graphs are let go has a few
ALIVE = 8  # graphs of earlier steps that make it worth asking who holds them
ODD = 4  # graphs of earlier steps after which it is asked whether a backward goes through them again
_OFTEN = ((128, 4), (2000, 10))  # up to how many marked steps, and how many of them apart, they are counted
_RARELY = 100


class Mark:
    """Put into the metadata of graph nodes: it lives as long as one of them does, whoever holds the node.

    As a hook of a node it tells its pile when a backward reaches that in a later step.
    """

    def __init__(self, pile: Pile, turn: int) -> None:
        self.pile, self.turn = pile, turn

    def __call__(self, _gradients: Any) -> None:
        self.pile.again += self.pile.turn > self.turn


class Pile:
    """turn: the step that is being marked, or the one after the last that was seen.
    seen: marked steps. begun: of each step whose marks may be alive, how many had been marked before it.
    since, first: the oldest step whose graph is alive, and how many were at the count that met it first.
    again: graphs through which a backward of a later step went. described: what one of those that are alive is.
    """

    def __init__(self, key: str, kind: type[Graphs], often: tuple[tuple[int, int], ...] = _OFTEN) -> None:
        self.key, self.kind, self.often = key, kind, often
        self.turn = self.seen = self.again = self.lines = 0
        self.since, self.first, self.doubled = -1, 0, 0
        self.told = 10
        self.alive: list[int] = []
        self.begun: dict[int, int] = {}
        self.marks: dict[int, list[tuple[Any, Any, str]]] = {}
        self.described = self.nothing()

    def mark(self, node: Any, tensor: Any, kind: str) -> None:
        """Marks the NODE of a TENSOR, unless it is marked."""
        if node is None or self.key in node.metadata:
            return
        mark = node.metadata[self.key] = Mark(self, self.turn)
        if len(self.alive) >= ODD:
            node.register_prehook(mark)
        self.marks.setdefault(self.turn, []).append((weakref.ref(mark), weakref.ref(tensor), kind))

    def mark_all(self, nodes: Any) -> None:
        """Marks all NODES by one mark; a node that an earlier step has made is that step's no longer."""
        mark = Mark(self, self.turn)
        for node in nodes:
            if not hasattr(node, "variable"):  # the leaves' own nodes live as long as the leaves
                node.metadata[self.key] = mark
        self.marks.setdefault(self.turn, []).append((weakref.ref(mark), _nothing, "within"))

    def ended(self, step: int) -> bool:
        """A step has ended; says whether it is time to count."""
        self.turn = step + 1
        if step not in self.marks:
            return False
        self.begun[step] = self.seen
        self.seen += 1
        return self.seen % next((every for limit, every in self.often if self.seen < limit), _RARELY) == 0

    def count(self) -> bool:
        """Which graphs of earlier steps are still there; says whether they are many."""
        self.marks = {
            turn: left for turn, marks in self.marks.items() if (left := [mark for mark in marks if mark[0]()])
        }
        self.begun = {turn: number for turn, number in self.begun.items() if turn in self.marks}
        self.alive = [turn for turn in self.marks if turn < self.turn - 2]
        since = self.alive[0] if self.alive else self.turn
        if since != self.since:
            self.since, self.first = since, len(self.alive)
            self.doubled = self.first
        return len(self.alive) >= ALIVE and 2 * len(self.alive) >= self.lately()

    def due(self, *, many: bool) -> bool:
        """Whether the count is worth a line: when the graphs that are alive, or the steps, have doubled."""
        more = many and self.lines < TOLD and len(self.alive) >= 2 * self.doubled
        if not more and self.seen < self.told:
            return False
        self.told = 2 * self.told if self.seen >= self.told else self.told
        self.doubled = len(self.alive) if many else self.doubled
        self.lines += 1
        return True

    def lately(self) -> int:
        """The marked steps since the oldest one whose graph is alive."""
        return self.seen - self.begun[self.alive[0]] if self.alive else 0

    def nothing(self) -> Graphs:
        """Before anything is counted or described."""
        return self.kind(path="", line=0, alive=0, seen=0, since=0, lately=0)

    def counted(self, where: tuple[str, int]) -> Graphs:
        """The latest count; its line is WHERE as long as nobody knows who holds the graphs."""
        path, line = (self.described.path, self.described.line) if self.described.holder else where
        counts = replace(self.described, path=path, line=line, alive=len(self.alive), seen=self.seen)
        counts.since = self.alive[0] if self.alive else self.turn
        counts.lately, counts.first, counts.again = self.lately(), self.first, self.again
        return counts

    def middle(self) -> list[tuple[Any, Any, str]]:
        """The marks of one of the steps whose graphs are alive."""
        return self.marks[self.alive[len(self.alive) // 2]]


def _nothing() -> None:
    """Stands for a tensor that is not known."""
