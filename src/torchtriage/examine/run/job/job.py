"""The job as its probes see it: events to subscribe to, a file to write to, functions to wrap."""

from __future__ import annotations

from _thread import get_ident
from typing import TYPE_CHECKING, Any

from .code import source
from .events import Cost, End, Veiled
from .inventory.failures import Failures
from .inventory.fingerprints import marks
from .inventory.optimizers import Built
from .tools import Tools
from .watch import patching
from .watch.clock import Clock
from .watch.rest import Rest
from .watch.stacks import Sampler
from .watch.threads import Watched

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from .ranks.hangs import Hangs
    from .record.writer import Writer


class Job(Tools):
    """What probes may do, and the promise that none of it can stop the job: the session, put together with its parts.

    clock: where steps end. rest: which of them nobody watches. stacks: samples where the watched thread stands.
    written: what the user's code says. built: where optimizers were. marks: to know a batch again. failures: passes
    that raised an error. hangs: notices that nothing moves.
    """

    hangs: Hangs

    def __init__(self, writer: Writer, steps: int | None = None, *, midway: bool = False) -> None:
        super().__init__(writer, steps, midway=midway)
        self.built = Built()
        self.stacks = Sampler(self)
        self.rest = Rest(self, self.stacks)
        self.phases = self.clock = Clock(self, self.rest, self.leave)
        self.watched = Watched(self)
        self.failures = Failures(self.clock.count, self.record)
        self.written, self.marks = source, marks

    def sampled(self) -> None:
        """The probe that is being placed looks at some steps only: the first, and then as many as the budget allows.

        Within a watched step it misses nothing; `watching` tells it when a new window begins.
        """
        self.governor.sampled.add(self.placing)

    def orderly(self) -> None:
        """The probe that is being placed looks at the order of calls, which is the code's and seldom changes with the
        steps: it is sampled, and sees the first steps and those at a suspicion, but of later windows one in eight.
        """
        self.sampled()
        self.governor.orderly.add(self.placing)

    def computes(self) -> None:
        """The probe that is being placed is sampled and has a device compute: where there is one it leaves out half of
        the steps, so that these are timed with the job's own kernels alone.
        """
        self.governor.computing.add(self.placing)

    def spaced(self) -> None:
        """The probe that is being placed looks at the first steps, at each fourth up to step 1024, at each sixteenth
        later, and at all that sampled probes watch: for what is to be seen at any time, and at its own time only.
        """
        self.governor.spaced.add(self.placing)

    def continuous(self) -> None:
        """The probe that is being placed is told of batches, backward passes, clips and optimizers' turns in steps that
        rest, too: it counts them, so that different ranks do the same things in the same turns. Nothing in it may take
        more than a few microseconds.
        """
        self.governor.continuous.add(self.placing)

    def computes_nothing(self) -> None:
        """The probe that is being placed calls no operation of torch: its listeners are called while a dispatch mode or
        a profiler of the job is on, too.
        """
        self.discreet.add(self.placing)

    def suspect(self) -> None:
        """Something may be going wrong just now: sampled probes see the next 32 steps, eight times in a run at most."""
        self.governor.suspect()

    def wrap(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replaces attribute NAME of OWNER by make(original) until the probes leave.

        Raises AttributeError when there is none, which switches off the probe that is being placed. When the
        replacement raises by its own fault, the job gets what the original gives and the probe is switched off.
        """
        self.undo(patching.replace(owner, name, lambda original: patching.guarded(self, self.rest, original, make)))

    def place_all(self, module: ModuleType, room: str) -> None:
        """Places the probes that MODULE defines: its public functions whose only parameter is `job`."""
        for name, function in list(vars(module).items()):
            code = getattr(function, "__code__", None)
            if code is None or name.startswith("_") or function.__module__ != module.__name__:
                continue
            if code.co_varnames[: code.co_argcount] == ("job",):
                self.place(f"{room}/{name}", function)

    def close(self) -> None:
        """After `leave`, and where no loop over hooks is under way: nothing of the watch stays in the process."""
        self.left = self.idle = True
        self.tidy()
        self.writer.close()
        self.clock.close()

    def forked(self) -> None:
        """In a forked child: a job of its own, with its own file when anything matters in it."""
        self.writer.forked()
        self.watched = Watched(self)
        self.clock.restart()
        self.accelerator.forget()
        self.late.forget()
        self.governor.restart()
        self.rest.restart()
        self.rest.turn(False)
        self.step = 0

    def leave(self, why: str) -> None:
        """The last events and the last line; from here on nothing is watched. Hooks go when `tidy` is called."""
        if self.left:
            return
        self.watched.thread = get_ident()
        if self.rest.on:
            self.safely(self.clock.end_rest)
        if (remainder := self.rest.remainder()) is not None:
            self.record(remainder)
        self.clock.end()
        self.fire("ending")
        costs = {probe: round(cost / 1000) for probe, cost in self.governor.costs.items()}
        for by, events in self.veiled.items():
            if events:
                self.record(Veiled(events=events, by=by))
        self.record(Cost(microseconds=costs, watched=self.governor.watched, of=self.governor.steps))
        self.left = self.idle = True
        if why:
            self.record(End(why=why))
