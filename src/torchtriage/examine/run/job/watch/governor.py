"""Which steps the sampled probes watch: some at first and at a suspicion, the others as a budget pays for them; and
which the spaced ones see besides.
"""

from __future__ import annotations

BUDGET = 0.01  # of the job's time, for all probes together, unless the user allows more or less
LEAST = 0.2  # of that, for the sampled probes, when those that are always on take the rest
FIRST = 64  # steps, all watched: most faults show at once
WINDOW = 3  # neighbouring steps that are watched together: what one step leaves, the next one meets
DEPTH = 32  # steps that are watched at a suspicion, whatever they cost
SUSPICIONS = 8  # in a run, at most
SPACED = 4, 16  # steps apart that spaced probes see, up to step EARLY and later, where half of the budget pays for it
EARLY = 1024
QUIET = 16, 4  # the step from which probes that compute leave steps to the clock of a device, and how many at a time
ORDERLY = 8  # windows, one of which probes see that look at the order of calls, which a loop seldom changes
DEARER = 5  # times as much as was booked in it, a step is charged with at most: others may have disturbed it


class Account:
    """What PROBE has cost so far, in nanoseconds."""

    __slots__ = ("nanoseconds", "probe")

    def __init__(self, probe: str) -> None:
        self.probe, self.nanoseconds = probe, 0


class Governor:
    """Watches the first steps, then windows of neighbouring steps as often as the budget pays for them.

    watching: whether sampled probes see the current step. opened: whether a window has just begun.
    spaced, sampled, continuous: names of probes. orderly: those of the sampled ones that see one window in eight.
    computing: those of the sampled ones that have the device compute. has_device: the job uses one, by whose clock its
    steps are timed. is_quiet: therefore those that compute leave the current step out. has_resumed: they have just come
    back. windows: that have opened since the last one that was free. struck: whether the current step is one that
    spaced probes see, watched or not.
    focus: the rooms whose probes go on after the first steps; all of them, where nobody has said what is wrong.
    first: steps of its beginning that are all watched.
    budget: the share of the job's time that all probes together may take after the first steps. With less than BUDGET
    spaced probes see fewer steps in the same measure. elapsed: nanoseconds that
    all steps have taken. usual: of a step in which nobody watches, 0 until
    some have been measured: from then on steps are charged with what they take longer, not with what was booked.
    """

    def __init__(self) -> None:
        self.budget = BUDGET
        self.accounts: dict[str, Account] = {}
        self.sampled: set[str] = set()
        self.orderly: set[str] = set()
        self.computing: set[str] = set()
        self.spaced: set[str] = set()
        self.continuous: set[str] = set()
        self.focus: frozenset[str] = frozenset()
        self.first = FIRST
        self.restart()

    def restart(self) -> None:
        """As if nothing had been spent yet."""
        self.watching = True
        self.opened = self.struck = False
        self.has_device = self.is_quiet = self.has_resumed = False
        for account in self.accounts.values():
            account.nanoseconds = 0
        self._booked = 0  # nanoseconds of all probes
        self._unbooked_sampled = self._unbooked_spaced = 0  # what two kinds of them have cost besides
        self._kinds: tuple[tuple[int, ...], list[Account], list[Account]] = (), [], []
        self.usual = 0
        self._before = 0  # booked before the current step
        self._early = 0, 0  # what spaced probes had cost, and how long the job had run, at step EARLY
        self.watched = self.steps = 0
        self.elapsed = 0
        self._deep = True  # whether the window that is open is free
        self._left = self.first  # steps of the window that are still to come
        self._suspicions = 0
        self._aside: set[str] = set()
        self.windows = 0
        self._free = 0  # nanoseconds that the first steps and suspicions have cost the sampled probes

    def account(self, probe: str) -> Account:
        """Whoever adds to it tells `spend` the sum."""
        if probe not in self.accounts:
            self.accounts[probe] = Account(probe)
        return self.accounts[probe]

    def spend(self, nanoseconds: int) -> None:
        """Adds what accounts have been charged with."""
        self._booked += nanoseconds

    def book(self, probe: str, nanoseconds: int) -> None:
        """Adds to what PROBE has cost."""
        self.account(probe).nanoseconds += nanoseconds
        self._booked += nanoseconds

    @property
    def costs(self) -> dict[str, int]:
        """Nanoseconds by probe."""
        return {probe: account.nanoseconds for probe, account in self.accounts.items() if account.nanoseconds}

    @property
    def booked(self) -> int:
        """Nanoseconds that all probes have cost so far."""
        return self._booked

    def _of_sampled(self) -> int:
        return sum(account.nanoseconds for account in self._by_kind()[1]) + self._unbooked_sampled

    def _of_spaced(self) -> int:
        return sum(account.nanoseconds for account in self._by_kind()[2]) + self._unbooked_spaced

    def _by_kind(self) -> tuple[tuple[int, ...], list[Account], list[Account]]:
        """The accounts of sampled probes and of spaced ones, after how many there are of everything."""
        sizes = len(self.accounts), len(self.sampled), len(self.spaced)
        if self._kinds[0] != sizes:
            every = self.accounts.values()
            sampled = [each for each in every if each.probe in self.sampled]
            spaced = [each for each in every if each.probe in self.spaced and each.probe not in self.sampled]
            self._kinds = sizes, sampled, spaced
        return self._kinds

    def sees(self, probe: str) -> bool:
        """Whether PROBE is told of the current step."""
        if probe in self.spaced:
            return self.watching or self.struck
        if (self.is_quiet and probe in self.computing) or (self.windows % ORDERLY and probe in self.orderly):
            return False
        return probe not in self.sampled or (self.watching and probe not in self._aside)

    @property
    def view(self) -> tuple[bool, ...]:
        """Steps with the same view are seen by the same probes."""
        return self.watching, self.struck, bool(self._aside), self.windows % ORDERLY > 0, self.is_quiet

    def reaches(self, step: int, *, is_due: bool = False) -> bool:
        """STEP is next: says whether spaced probes come or go. IS_DUE: whatever its number, since steps have rested."""
        before = self.struck
        if step <= EARLY:
            self._early = self._of_spaced(), self.elapsed
        is_due = is_due or not step % (SPACED[step >= EARLY] * max(round(BUDGET / self.budget), 1))
        spent, elapsed = self._of_spaced() - self._early[0], self.elapsed - self._early[1]
        self.struck = is_due and spent <= self.budget / 2 * elapsed
        return self.struck != before

    def suspect(self) -> None:
        """Something may be going wrong just now: the next steps are watched."""
        if self._suspicions < SUSPICIONS and not self.watching:
            self._suspicions += 1
            self._left, self._deep = DEPTH + 1, True

    def anew(self) -> None:
        """The job has only now begun to train: the steps from here on are its first."""
        self._left, self._deep, self._aside = self.first + 1, True, set()

    def ended(self, nanoseconds: int) -> bool:
        """A step has ended that took so long: chooses who watches the next one; says whether that is new."""
        self.steps += 1
        self.elapsed += nanoseconds
        if self.usual:
            self._charge(nanoseconds)
        self._before = self._booked
        before, aside, self.watched = self.watching, self._aside, self.watched + self.watching
        was_quiet = self.is_quiet
        self.is_quiet = self.has_device and self.steps >= QUIET[0] and self.steps // QUIET[1] % 2 == 1
        self.has_resumed = was_quiet and not self.is_quiet
        self._left -= 1
        if self._left <= 0:
            if self.focus:
                self._aside = {probe for probe in self.sampled if probe.partition("/")[0] not in self.focus}
            if self._deep:
                self._free, self._deep = self._of_sampled(), False
            self.watching = self._affordable()
            self._left = WINDOW if self.watching else 0
        else:
            self.watching = True
        self.opened = self.watching and not before
        if self.opened:
            self.windows = 0 if self._deep else self.windows + 1
        return self.watching != before or self._aside is not aside or self.is_quiet != was_quiet

    def _charge(self, nanoseconds: int) -> None:
        """Books the rest of what watching has cost a step: code that runs seldom slows down what comes after it."""
        booked = self._booked - self._before
        rest = min(max(nanoseconds - self.usual, booked), DEARER * booked) - booked
        self._booked += rest
        if self.watching:
            self._unbooked_sampled += rest
        elif self.struck:
            self._unbooked_spaced += rest

    def skip(self, steps: int, nanoseconds: int) -> None:
        """So many STEPS have ended in which nobody watched, and took so long in all."""
        self.steps += steps
        self.elapsed += nanoseconds

    def _affordable(self) -> bool:
        sampled = self._of_sampled()
        paid, others = self.budget * self.elapsed, self._booked - sampled
        return sampled - self._free <= max(paid - others, LEAST * paid)
