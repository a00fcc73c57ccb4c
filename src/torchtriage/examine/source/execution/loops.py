"""How often the loops of a program are executed: as often as shows what they do."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from torchtriage.examine.source.execution import events

ROUNDS = 3
"""Iterations of a loop without a known end: the third shows whether the second has left something behind."""
LATE = 1
"""The same where few steps are left; one more of a loop that trains."""
ACCUMULATED = 70
"""Iterations of a loop that trains, at most, until an optimizer has stepped twice: recipes accumulate up to 64."""
EPOCHS, PERIODS = 2, 6
"""Iterations of a loop around one that trains; at most until what happens every so many epochs has happened. What
happens more seldom may happen in any of them.
"""
ELEMENTS = 64
"""Numbers of a range, from which it has no known end: models have that many layers at most. In a comprehension within
another a quarter of it: images are made so, pixel by pixel.
"""
KNOWN = 4096
"""Iterations of a loop over something known in which nothing is trained and no model is called: parameters of one."""


@dataclass(eq=False)
class Loop:
    """A loop under way. depth: loops around it. first: events before it. count: iterations begun, from 0.

    is_endless: what it goes over has no known end. period: the longest of those that its code asks for (step % 10).
    """

    node: ast.AST
    depth: int
    first: int
    count: int = -1
    is_endless: bool = False
    period: int = 0
    counted: int = 0
    """The highest number that its code compares a count with."""
    seen: int = 0
    """Events that it has looked at."""
    trains: bool = False
    holds_training: bool = False
    """Whether a loop within it trains."""
    evaluates: bool = False
    """Whether a model is called in it."""
    steps: set[int] = field(default_factory=set)
    """The iterations in which an optimizer steps."""

    def goes_on(self, happened: list[events.Event], *, is_late: bool = False) -> bool:
        """Whether one more iteration may show something, after all that has HAPPENED in the execution.

        is_late: half of the steps that an execution may take are gone: of large programs, as of five networks that
        train each other, fewer iterations are executed than of others, so that they are followed to their end.
        """
        self.count += 1
        for each in happened[max(self.first, self.seen) :]:
            self._note(each)
        self.seen = len(happened)
        if not self.trains:
            rounds = LATE if is_late else ROUNDS
            return self.count < (rounds if self.is_endless or self.evaluates else KNOWN)
        if is_late and (self.steps or self.holds_training):
            return self.count < (LATE if self.holds_training else LATE + 1)
        if self.holds_training:
            return self.count < max(EPOCHS, min(self.period + 1, PERIODS))
        counts = bool(self.period or self.counted or self.steps)  # nothing else changes from one iteration to the next
        return self.count < ROUNDS or (counts and len(self.steps) < 2 and self.count < ACCUMULATED)

    def _note(self, event: events.Event) -> None:
        """EVENT has happened within it."""
        if isinstance(event, events.Backward):
            self.trains = True
            self.holds_training |= len(event.loops) > self.depth + 1
        elif isinstance(event, events.OptimizerStep):
            self.steps.add(event.loops[self.depth][1] if len(event.loops) > self.depth else -1)
        self.evaluates |= isinstance(event, events.Forward)
