"""The whole job as one trial: for what is decided where it starts, for times, and where a process cannot be forked."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import from_row

from .conductor import Conductor
from .events import Wish
from .interventions import Start
from .trial import Trial, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from torchtriage.examine.run.job.events import Event
    from torchtriage.examine.run.job.job import Job

LOOKS = 16  # steps between two looks at the conductor
PAUSE = 0.02  # seconds between them, once the trial is over


def whole(job: Job) -> None:
    """Where the environment names a wish, all that the job does from here on is the trial of it."""
    wish = os.environ.get("TORCHTRIAGE_WISH")
    if wish:
        job.rest.closely = 1 << 62  # a step that rests tells nothing
        Whole(job, from_row(Wish, json.loads(wish)))


class Whole:
    """Waits for the first pass that the job is to learn from, where the trial begins."""

    def __init__(self, job: Job, wish: Wish) -> None:
        self.job, self.conductor = job, Conductor()
        self.trial = Trial(job, wish, self._end)
        self.delivery: tuple[Any, Any] = (None, None)
        self._has_begun = self._learns = self._is_over = False
        own: Any = job
        own.switch_off = self.trial.failed
        job.on("batch", self._delivered)
        job.on("iterated", self._iterated)
        job.on("ending", self._ending)
        job.listen(self.forward, self.backward)
        self.start = Start(job, self.trial.give_up)
        self.trial.in_force = self.start.apply(wish.changes)

    def _delivered(self, loader: Any, batch: Any) -> None:
        if not self._has_begun:
            self.delivery = loader, batch

    def forward(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A root module is about to run."""
        if self._has_begun or not self.job.learning or not (module.training or self._learns):
            return
        self._has_begun = True
        delivery, self.delivery = self.delivery, (None, None)
        self.start.begin()
        self.trial.begin((module, args, kwargs), delivery)

    def backward(self, _roots: tuple[Any, ...]) -> None:
        """A pass in evaluation mode was one of the training, as of a model for which nobody has called train()."""
        self._learns = True

    def _iterated(self, step: int) -> None:
        if step % LOOKS == 0:
            self.conductor.end_if_gone()

    def _ending(self) -> None:
        if self._has_begun and not self._is_over:
            self.trial.ending()

    def _end(self, event: Event) -> NoReturn:
        """Waits to be ended with all other ranks: one that left by itself would fail them. Probes have left by then."""
        self._is_over = True
        self.job.leave("steps")
        if not _rank():
            write(self.job, event)
        while True:
            time.sleep(PAUSE)
            self.conductor.end_if_gone()


def _rank() -> int:
    import torch

    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
