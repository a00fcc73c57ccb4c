"""The figures of an experiment, as plain JSON values."""

from __future__ import annotations

from math import isfinite
from statistics import fmean
from typing import Any

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Course
from torchtriage.examine.trial.experiment.conduct import Experiment
from torchtriage.examine.trial.experiment.questions import arms


def measurements(found: Experiment) -> dict[str, Any]:
    """What was tried: of each arm where the loss ended and how much further it got than the job as it is.

    further: a share of what the better of the two gains; at_least: it may be more; spread: its 95 % interval, None of a
    single pair. without_result: changes that had no place in the job, or whose trial did not come far enough.
    """
    control = found.courses.of(CONTROL)
    tried = [_arm(found, arm) for arm in arms(found.answers) if found.courses.of(arm)]
    refused = [{"changes": dict(arm.changes), "why": why} for arm, why in found.answers.refused.items()]
    refused += [
        {"changes": dict(arm.changes), "why": _why(course)}
        for (arm, number), course in found.courses.found.items()
        if not number and not course.is_told
    ]
    return {
        "experiment": {
            "steps": found.steps,
            "branches": len(found.courses.found) + len(found.influences),
            "seconds": round(found.seconds, 3),
            "start": found.courses.start if control else None,
            "noise": found.courses.noise(CONTROL) if control else None,
            "arms": tried,
            "without_result": refused,
        }
    }


def _why(course: Course) -> str:
    """Why a course was too short to be held against another."""
    if course.ended == "late":
        return "it took longer than its part of the budget"
    ending = f": {course.why}" if course.why else ""
    return f"it ended after {len(course.losses)} steps{ending}"


def _arm(found: Experiment, arm: Arm) -> dict[str, Any]:
    courses = found.courses.of(arm)
    told = found.courses.contrast(arm, CONTROL)
    end = told.ends[0] if told is not None else fmean(each.end for each in courses.values())
    row: dict[str, Any] = {
        "changes": dict(arm.changes),
        "tries": len(courses),
        "end": end if isfinite(end) else None,
        "losses": [list(each.losses) for each in courses.values()],
    }
    if told is not None and arm != CONTROL:
        row |= {
            "further": told.value,
            "at_least": told.is_least,
            "spread": list(told.spread) if told.tries > 1 else None,
        }
    return row
