"""The trials: a function or a job is run on purpose, and what it gave is judged as everything else is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.examine.detector import perform
from torchtriage.triage import concluded, detectors

if TYPE_CHECKING:
    from torchtriage.examine.trial.gradient import Asked


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
