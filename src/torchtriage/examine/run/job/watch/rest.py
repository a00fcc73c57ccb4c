"""Steps in which the hooks count, and nobody listens: a long job is watched in as many steps as its budget pays for.

What a watched step costs is measured against the steps of the same job that rest among them: what the probes book is a
third to a half of it, since Python code that has not run for milliseconds has lost its place in the caches.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ..code.interrupts import is_asynchronous
from ..events import Rested
from .governor import DEARER, EARLY

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from .session import Session
    from .stacks import Sampler

    class Guard(Protocol):
        """Whoever must not miss a thing in steps that rest. What it says ends the rest at once. probe: its name."""

        probe: str

        def forward(self, module: Any, args: Any, kwargs: Any) -> None: ...  # of a root module, that begins

        def is_loss_finite(self, root: Any) -> bool: ...  # of a backward pass that begins

        def is_gradient_finite(self, optimizer: Any) -> bool: ...  # that is about to update

        def batch(self, loader: Any, batch: Any) -> None: ...  # of the step that is watched after all, before it was

        def close(self) -> None: ...  # the step has ended


CLOSELY = 60_000_000_000  # nanoseconds of a job in which no step rests: what fails soon, or is over soon, is seen whole
MOST = 256  # steps apart, at most, that do not rest: of 64 steps of 1 ms, the one that is watched took 2 %
PHASE = 37  # by which the steps that are watched move from one 256 to the next: with every number that is odd, all do
TOGETHER = 4096  # steps, of which all ranks watch the first: they compare what they hold, and look at their collectives
CONTROL = 16  # steps, of which one rests where the budget would pay for all: the measure goes on
RECENT = 32  # steps of each kind that are compared
UNSEEN = 3  # times as much as has been booked, a watched step is taken to cost before any has rested


class Rest:
    """on: the current step rests. guard: looks at it nevertheless, as little as it can."""

    def __init__(self, job: Session, stacks: Sampler) -> None:
        self.job, self.stacks = job, stacks
        self.on = False
        self.guard: Guard | None = None
        self.first, self.closely = EARLY, CLOSELY  # step that may rest, and the time until then
        self.restart()

    def restart(self) -> None:
        self.on, self.total = False, 0  # total: steps that have rested so far
        self._steps = self._nanoseconds = self._epochs = 0  # that have rested since the last step that did not
        self.loss: float | None = None  # of the step under way, where somebody has looked at it
        self.batch: tuple[Any, Any] | None = None  # its latest, after the iterator that gave it
        self._losses: list[float] = []
        self._stride, self._due = 1, self.first
        self._watched: deque[int] = deque(maxlen=RECENT)
        self._booked: deque[int] = deque(maxlen=RECENT)
        self._rested: deque[int] = deque(maxlen=RECENT)

    def follows(self, took: int) -> bool:
        """Whether the step that is next rests; the one before TOOK so many nanoseconds and did not."""
        job = self.job
        step, governor = job.step, job.governor
        if not (governor.watching or governor.struck):
            self._watched.append(took)
            self._booked.append(job.phases.parts["probes"])
        if step < self.first or governor.elapsed < self.closely or job.phases.boundary != "optimizer" or job.left:
            return False
        if governor.watching or self.stacks.running:
            return False
        if step >= self._due:
            self._stride, self._due = self._affordable(), step + MOST
        return not governor.struck and self.goes_on(step)

    def goes_on(self, step: int) -> bool:
        """Whether STEP rests, by its number."""
        if self._stride == 1:
            return step % CONTROL == CONTROL - 1
        # another phase each time: what a loop does in every second step must not be all that is watched, or none of it;
        # a rank that rests more than others does not watch a step that they pass over
        return (step + step // MOST * PHASE) % self._stride > 0 and step % TOGETHER > 0

    def count(self, took: int) -> bool:
        """Adds a step that rested and has ended; says whether the next one rests, too."""
        self._steps += 1
        self.total += 1
        self._nanoseconds += took
        self._rested.append(took)
        if self.loss is not None:
            self._losses.append(self.loss)
            self.loss = None
        self.batch = None
        if self.guard is not None:
            self.guard.close()
        return self.goes_on(self.job.step)

    def end(self, epochs: int) -> None:
        """The next step is watched; so many passes over loaders have begun meanwhile."""
        self._epochs += epochs
        self.job.governor.skip(self._steps, self._nanoseconds)
        self.turn(False)

    def remainder(self) -> Rested | None:
        """Those that nobody has written down yet: the job is ending."""
        if not self._steps:
            return None
        losses = list(self._losses) if len(self._losses) == self._steps else []
        return Rested(
            rested=self._steps, rested_seconds=self._nanoseconds / 1e9, rested_epochs=self._epochs, rested_losses=losses
        )

    def members(self, *, is_dense: bool) -> str:
        """Members of a step's line: how many steps have rested since the last one, what they took, passes over loaders
        that began in them, and, where all steps are written down, their losses as far as all are known.
        """
        if not self._steps:
            return ""
        told = f',"rested":{self._steps},"rested_seconds":{self._nanoseconds}e-9,"rested_epochs":{self._epochs}'
        if is_dense and len(self._losses) == self._steps:
            told += f',"rested_losses":[{",".join(map(repr, self._losses))}]'
        self.forget()
        return told

    def forget(self) -> None:
        """The step that follows them has ended: they have been written down, or it is one of those that are not."""
        self._steps = self._nanoseconds = self._epochs = 0
        self._losses.clear()

    def keep(self, module: Any, args: Any, kwargs: Any) -> None:
        """A forward pass of a root module begins."""
        guard = self.guard
        if guard is not None:
            try:
                guard.forward(module, args, kwargs)
            except Exception as error:  # noqa: BLE001 - our fault must not become the job's
                self._lose(guard, error)

    def is_loss_fine(self, root: Any) -> bool:
        """Whether a backward pass from ROOT need not be watched."""
        guard = self.guard
        try:
            return guard is None or guard.is_loss_finite(root)
        except Exception as error:  # noqa: BLE001 - as above
            return self._lose(guard, error)

    def is_gradient_fine(self, optimizer: Any) -> bool:
        """Whether a step of OPTIMIZER, which is about to begin, need not be watched."""
        guard = self.guard
        try:
            return guard is None or guard.is_gradient_finite(optimizer)
        except Exception as error:  # noqa: BLE001 - as above
            return self._lose(guard, error)

    def _lose(self, guard: Guard | None, error: Exception) -> bool:
        if guard is None or is_asynchronous(error):
            raise error
        self.guard = None
        self.job.switch_off(guard.probe, error)
        return True

    def turn(self, on: bool) -> None:
        """The next step rests, or does not."""
        self.on = self.job.listeners.resting = on
        self.loss = self.batch = None
        self.job.listeners.choose()

    def show(self, guard: Guard, batch: tuple[Any, Any]) -> None:
        """The guard gets the batch of a step that is watched after all, after the iterator that gave it."""
        loader = self.job.loader_of(batch[0])
        if loader is not None:
            try:
                guard.batch(loader, batch[1])
            except Exception as error:  # noqa: BLE001 - as above
                self._lose(guard, error)

    def _affordable(self) -> int:
        """Of how many steps one may be watched: a power of two."""
        if not self._watched:
            return self._stride
        governor = self.job.governor
        booked, usual = _median(self._booked), _median(self._rested or self._watched)
        cost = UNSEEN * booked
        if len(self._rested) == RECENT:
            governor.usual = int(usual)
            cost = min(max(_median(self._watched) - usual, booked), DEARER * booked)
        stride = 1
        while stride < MOST and cost > stride * governor.budget / 2 * usual:
            stride *= 2
        return stride


def _median(values: Iterable[int]) -> float:
    """That of `statistics`, which would be the one module that imports fractions and decimals into the job: 2 ms."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
