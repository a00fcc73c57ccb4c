"""The trials: a function or a job is run on purpose, and what it gave is judged as everything else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.examine.detector import perform
from torchtriage.triage import concluded, detectors

if TYPE_CHECKING:
    from torchtriage.core.evidence import Outcome
    from torchtriage.examine.trial.experiment.wanted import Wanted as Experimented
    from torchtriage.examine.trial.gradient import Asked
    from torchtriage.examine.trial.repeat.pairs import Runner
    from torchtriage.examine.trial.resume.conduct import Wanted
    from torchtriage.examine.trial.resume.trial import Resumed, Trial


def gradcheck(asked: Asked, case: Case | None = None, say: Callable[[str], None] = lambda _: None) -> Case:
    """What the gradient of a custom autograd function is, against its derivative, in every situation of a training.

    SAY is told what is being looked at. Raises TriageError where the function or its inputs cannot be had.
    """
    from torchtriage.examine.trial import gradient

    trial = gradient.tried(asked, say)
    outcomes = (
        *trial.inconclusive,
        *perform(tuple(detectors("readings", "torchtriage.examine.trial.gradient")), trial),
    )
    return replace(concluded(case, outcomes), measurements=gradient.measurements(trial))


def resume_check(wanted: Wanted, case: Case | None = None) -> Case:
    """Stops a job, resumes it, and lets it run uninterrupted: whether the three are one.

    Raises TriageError where a leg shows nothing: the job fails, makes no checkpoint, never resumes, or is about to
    overwrite what is not its own.
    """
    from torchtriage.examine.trial.resume.conduct import conduct

    return resumed(conduct(wanted), case)


def resumed(trial: Trial, case: Case | None = None) -> Case:
    """The case of a TRIAL that was conducted in whatever way."""
    outcomes = (*trial.inconclusive, *perform(tuple(detectors("readings", "torchtriage.examine.trial.resume")), trial))
    told = {"resume": {"ranks": [_figures(each) for each in trial.ranks]}} if trial.ranks else {}
    return replace(concluded(case, outcomes), measurements=told)


def _figures(resumed: Resumed) -> dict[str, Any]:
    course = resumed.course
    return {
        "rank": resumed.rank,
        "step": resumed.turn,
        "files": {path.rpartition("/")[2]: turn for path, turn in sorted(resumed.files.items())},
        "entries": resumed.entries,
        "parts": sorted({part.kind for part in resumed.parts if part.kind not in ("number", "tensor")}),
        "passes": course.units,
        "apart": dict(course.apart),
        "missing_passes": course.missing,
        "final_weights": course.relative,
        "repeats": resumed.repeat.apart is None,
    }


def repro(runner: Runner, case: Case | None = None) -> Case:
    """Whether the command of RUNNER gives the same training twice; where its runs part, and by what.

    Raises TriageError where it cannot be started, or would overwrite a file of the user's.
    """
    from torchtriage.examine.trial.repeat import measure, trial

    found = trial.repeat(runner)
    outcomes = (*found.unseen, *perform(tuple(detectors("readings", "torchtriage.examine.trial.repeat")), found))
    return replace(concluded(case, outcomes), measurements=measure.measurements(found))


def experiment(wanted: Experimented, case: Case | None = None) -> Case:
    """What is changed in the command of WANTED, one thing at a time, and whether that matters.

    The job itself is watched as by `run`, but for its times: it was halted and branched. Raises TriageError where it
    cannot be started, or would overwrite a file of the user's.
    """
    from torchtriage.examine.trial.experiment import conduct, measure

    found = conduct.experiment(wanted)
    outcomes: tuple[Outcome, ...] = found.unseen
    if found.has_seen:
        readings = tuple(detectors("readings", "torchtriage.examine.trial.experiment"))
        outcomes = (*outcomes, *perform(readings, found))
    if found.record is not None and found.record.ranks:
        untimed = tuple(each for each in detectors("readings") if not each.timed)
        outcomes = (*outcomes, *perform(untimed, found.record))
    return replace(concluded(case, outcomes), measurements=measure.measurements(found))
