"""Which steps the sampled probes watch, so that all probes together stay within a budget of the job's time."""

from __future__ import annotations

BUDGET = 0.01  # of the job's time, for all probes together
LEAST = 0.002  # of it, for the sampled probes, when those that are always on take the rest
FIRST = 64  # steps, all watched: most faults show at once
WINDOW = 3  # neighbouring steps that are watched together: what one step leaves, the next one meets


class Governor:
    """Watches the first steps, then windows of neighbouring steps as often as the budget pays for them.

    watching: whether sampled probes see the current step. opened: whether a window has just begun.
    """

    def __init__(self) -> None:
        self.sampled: set[str] = set()
        self.restart()

    def restart(self) -> None:
        """As if nothing had been spent yet."""
        self.watching = True
        self.opened = False
        self.costs: dict[str, int] = {}  # nanoseconds by probe
        self.watched = self.steps = 0
        self._elapsed = 0
        self._left = FIRST  # steps of the window that are still to come

    def book(self, probe: str, nanoseconds: int) -> None:
        """Adds to what PROBE has cost."""
        self.costs[probe] = self.costs.get(probe, 0) + nanoseconds

    def ended(self, nanoseconds: int) -> None:
        """A step has ended that took so long: chooses whether the next one is watched."""
        self.steps += 1
        self._elapsed += nanoseconds
        before, self.watched = self.watching, self.watched + self.watching
        self._left -= 1
        if self._left <= 0:
            self.watching = self._affordable()
            self._left = WINDOW if self.watching else 0
        self.opened = self.watching and not before

    def _affordable(self) -> bool:
        sampled = sum(cost for probe, cost in self.costs.items() if probe in self.sampled)
        others = sum(self.costs.values()) - sampled
        return sampled <= max(BUDGET * self._elapsed - others, LEAST * self._elapsed)
