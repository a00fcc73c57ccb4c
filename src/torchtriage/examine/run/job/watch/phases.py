"""Where the time of a step goes, and what happened in it: no more than adding up."""

from __future__ import annotations

from time import perf_counter_ns as now

PHASES: tuple[str, ...] = ("data", "transfer", "forward", "backward", "optimizer", "probes")
PARTS: tuple[str, ...] = (*PHASES, "communication")  # what most jobs have none of stands only in the rows that have it
COUNTS: tuple[str, ...] = ("batches", "epochs", "forwards", "backwards", "skipped")
NO_TIME: dict[str, int] = dict.fromkeys(PARTS, 0)
NO_COUNTS: dict[str, int] = dict.fromkeys(COUNTS, 0)


class Phases:
    """Books each nanosecond of a step once; nested phases count once, in the inner one.

    counts: of the step under way. parts: nanoseconds of the step that has just ended, by phase. row: passes with
    gradients since the last backward or optimizer's turn. turns: of optimizers so far. boundary: what ends a step, None
    until anything has.
    """

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """As if nothing had been seen yet."""
        self.boundary: str | None = None
        self.counts = dict.fromkeys(COUNTS, 0)
        self._ended = dict.fromkeys(COUNTS, 0)  # of all steps that have ended, but for those that have rested since
        self.row = 0
        self.turns = 0
        self._spent = dict.fromkeys(PARTS, 0)
        self.parts = self._spent
        self._claimed = 0

    def enter(self) -> tuple[int, int]:
        """The start of a phase: hand it to `leave`."""
        return now(), self._claimed

    def leave(self, entered: tuple[int, int], phase: str) -> None:
        """Books the time since ENTERED, less what inner phases have claimed, as PHASE."""
        began, claimed = entered
        elapsed = now() - began
        self._spent[phase] += elapsed - (self._claimed - claimed)
        self._claimed = claimed + elapsed

    def book(self, phase: str, nanoseconds: int) -> None:
        """Books time that no enclosing phase is to count."""
        self._spent[phase] += nanoseconds
        self._claimed += nanoseconds

    def spent(self, phase: str) -> int:
        """Nanoseconds of the step under way that were booked as PHASE."""
        return self._spent[phase]

    def count(self, what: str) -> int:
        """How many batches, epochs, forwards, backwards or skipped updates there have been so far."""
        return self._ended[what] + self.counts[what]
