"""What an experiment shows of the time of a step: how much of it is loading, and whether more workers shorten it."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.trial.experiment.arms import CONTROL, Arm
from torchtriage.examine.trial.experiment.conduct import Experiment
from torchtriage.examine.trial.experiment.questions import FASTER_LOADING, FROM_MEMORY, TRIES

FLOOR = 2e-3  # seconds of a step, that loading has to take: see the page


@detector("trial/data-wait")
def data_wait(experiment: Experiment) -> Iterator[Sighting]:
    """The part of a step that is not there when each batch is one that is in memory."""
    yield from _saved(experiment, FROM_MEMORY, "when each batch is one from memory, a step takes")


@detector("trial/worker-count")
def worker_count(experiment: Experiment) -> Iterator[Sighting]:
    """The part of a step that is not there when processes load for it."""
    courses = experiment.paces.courses
    found = [(arm, told) for arm in FASTER_LOADING if (told := courses.saved(arm, CONTROL)) and told.tries == TRIES]
    if found:
        best, _ = min(found, key=lambda each: each[1].ends[0])
        yield from _saved(experiment, best, f"with {dict(best.changes)['workers']:g} loader workers a step takes")


def _saved(experiment: Experiment, arm: Arm, what: str) -> Iterator[Sighting]:
    paces = experiment.paces
    if not paces.courses.of(CONTROL):
        return
    if arm in paces.refused:
        raise CannotSee(f"{arm} could not be tried: {paces.refused[arm]}", "Give the command that trains.")
    told = paces.courses.saved(arm, CONTROL)
    if told is None or told.tries < TRIES or told.ends[1] - told.ends[0] < FLOOR:
        return
    was, now = (f"{1000 * each:.3g} ms" for each in reversed(told.ends))
    fact = f"{what} {now} instead of {was} ({told.tries} pairs of runs, of {experiment.steps} steps each)"
    yield Sighting(Place(rank=0), fact, told.value, "of a step", told.spread)
