"""The figures of an experiment, as plain JSON values."""

from __future__ import annotations

from math import isfinite
from statistics import fmean
from typing import Any

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Contrast, Course
from torchtriage.examine.trial.experiment.conduct import PEAK_STEPS, Experiment
from torchtriage.examine.trial.experiment.questions import Answers, arms


def measurements(found: Experiment) -> dict[str, Any]:
    """What was tried: of each arm where the loss ended and how much further it got than the job as it is.

    further: a share of what the better of the two gains; at_least: it may be more; spread: its 95 % interval, None of a
    single pair. without_result: changes that had no place in the job, or whose trial did not come far enough. speed:
    the same of legs in which steps were timed. memory: of legs whose peak was read, in bytes; full: what the allocator
    said where the device was full instead.
    """
    return {"experiment": _losses(found) | {"speed": _speed(found), "memory": _memory(found)}}


def _losses(found: Experiment) -> dict[str, Any]:
    control = found.courses.of(CONTROL)
    tried = [_arm(found, arm) for arm in arms(found.answers) if found.courses.of(arm)]
    return {
        "steps": found.steps,
        "branches": len(found.courses.found) + len(found.influences),
        "seconds": round(found.seconds, 3),
        "start": found.courses.start if control else None,
        "noise": found.courses.noise(CONTROL) if control else None,
        "arms": tried,
        "without_result": _without_result(found.answers),
    }


def _speed(found: Experiment) -> dict[str, Any]:
    """Of each leg's arm how long a step took and what it saves of it; seconds of its mean over all tries."""
    courses = found.paces.courses
    control = courses.of(CONTROL)
    tried = [(arm, saved) for arm in arms(found.paces) if arm != CONTROL and (saved := courses.saved(arm, CONTROL))]
    return {
        "legs": len(courses.found),
        "step": fmean(each.pace for each in control.values()) if control else None,
        "arms": [_pace(arm, saved) for arm, saved in tried],
        "without_result": _without_result(found.paces),
    }


def _memory(found: Experiment) -> dict[str, Any]:
    courses = found.peaks.courses.found
    own = courses.get((CONTROL, 0))
    arms = [arm for arm, _ in courses if arm != CONTROL]
    return {
        "legs": len(courses),
        "steps": PEAK_STEPS,
        "unchanged": _peak(own) if own is not None else None,
        "arms": [{"name": str(arm), "changes": dict(arm.changes), **_peak(courses[arm, 0])} for arm in arms],
        "without_result": [
            {"name": str(arm), "changes": dict(arm.changes), "why": why} for arm, why in found.peaks.refused.items()
        ],
    }


def _peak(course: Course) -> dict[str, Any]:
    return {"peak": course.peak, "full": course.full}


def _pace(arm: Arm, told: Contrast) -> dict[str, Any]:
    return {
        "name": str(arm),
        "changes": dict(arm.changes),
        "pairs": told.tries,
        "from": told.ends[1],
        "to": told.ends[0],
        "saved": told.value,
        "spread": list(told.spread) if told.tries > 1 else None,
    }


def _without_result(answers: Answers) -> list[dict[str, Any]]:
    refused = [{"name": str(arm), "changes": dict(arm.changes), "why": why} for arm, why in answers.refused.items()]
    return refused + [
        {"name": str(arm), "changes": dict(arm.changes), "why": _why(course)}
        for (arm, number), course in answers.courses.found.items()
        if not number and not course.is_told
    ]


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
        "name": str(arm),
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
