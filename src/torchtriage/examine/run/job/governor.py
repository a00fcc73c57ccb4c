"""Which steps the sampled probes watch: some at first and at a suspicion, the others as a budget pays for them; and
which the spaced ones see besides.
"""

from __future__ import annotations

BUDGET = 0.01  # of the job's time, for all probes together
LEAST = 0.002  # of it, for the sampled probes, when those that are always on take the rest
FIRST = 64  # steps, all watched: most faults show at once
WINDOW = 3  # neighbouring steps that are watched together: what one step leaves, the next one meets
DEPTH = 32  # steps that are watched at a suspicion, whatever they cost
SUSPICIONS = 8  # in a run, at most
SPACED = 4, 16  # steps apart that spaced probes see, up to step EARLY and later
EARLY = 1024


class Governor:
    """Watches the first steps, then windows of neighbouring steps as often as the budget pays for them.

    watching: whether sampled probes see the current step. opened: whether a window has just begun.
    spaced, sampled: names of probes. struck: whether the current step is one that spaced probes see, watched or not.
    focus: the rooms whose probes go on after the first steps; all of them, where nobody has said what is wrong.
    """

    def __init__(self) -> None:
        self.sampled: set[str] = set()
        self.spaced: set[str] = set()
        self.focus: frozenset[str] = frozenset()
        self.restart()

    def restart(self) -> None:
        """As if nothing had been spent yet."""
        self.watching = True
        self.opened = self.struck = False
        self.costs: dict[str, int] = {}  # nanoseconds by probe
        self.watched = self.steps = 0
        self._elapsed = 0
        self._deep = True  # whether the window that is open is free
        self._left = FIRST  # steps of the window that are still to come
        self._suspicions = 0
        self._aside: set[str] = set()
        self._free = 0  # nanoseconds that the first steps and suspicions have cost the sampled probes

    def book(self, probe: str, nanoseconds: int) -> None:
        """Adds to what PROBE has cost."""
        self.costs[probe] = self.costs.get(probe, 0) + nanoseconds

    def sees(self, probe: str) -> bool:
        """Whether PROBE is told of the current step."""
        if probe in self.spaced:
            return self.watching or self.struck
        return probe not in self.sampled or (self.watching and probe not in self._aside)

    @property
    def view(self) -> tuple[bool, bool, bool]:
        """Steps with the same view are seen by the same probes."""
        return self.watching, self.struck, bool(self._aside)

    def reaches(self, step: int) -> bool:
        """STEP is next: says whether spaced probes come or go."""
        before = self.struck
        self.struck = not step % SPACED[step >= EARLY]
        return self.struck != before

    def suspect(self) -> None:
        """Something may be going wrong just now: the next steps are watched."""
        if self._suspicions < SUSPICIONS and not self.watching:
            self._suspicions += 1
            self._left, self._deep = DEPTH + 1, True

    def anew(self) -> None:
        """The job has only now begun to train: the steps from here on are its first."""
        self._left, self._deep, self._aside = FIRST + 1, True, set()

    def ended(self, nanoseconds: int) -> bool:
        """A step has ended that took so long: chooses who watches the next one; says whether that is new."""
        self.steps += 1
        self._elapsed += nanoseconds
        before, aside, self.watched = self.watching, self._aside, self.watched + self.watching
        self._left -= 1
        if self._left <= 0:
            if self.focus:
                self._aside = {probe for probe in self.sampled if probe.partition("/")[0] not in self.focus}
            if self._deep:
                self._free, self._deep = self._sampled(), False
            self.watching = self._affordable()
            self._left = WINDOW if self.watching else 0
        else:
            self.watching = True
        self.opened = self.watching and not before
        return self.watching != before or self._aside is not aside

    def _affordable(self) -> bool:
        sampled = self._sampled()
        others = sum(self.costs.values()) - sampled
        return sampled - self._free <= max(BUDGET * self._elapsed - others, LEAST * self._elapsed)

    def _sampled(self) -> int:
        return sum(cost for probe, cost in self.costs.items() if probe in self.sampled)
