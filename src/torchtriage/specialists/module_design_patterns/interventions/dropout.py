"""Dropout, taken away."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchtriage.examine.trial.experiment.job.interventions import Interventions


def dropout(now: Interventions, value: float) -> None:
    """Sets the probability of each dropout module of the root modules to VALUE; refuses where there is none."""
    found = [
        part
        for root in now.job.roots
        for part in root.modules()
        if hasattr(part, "p") and "Dropout" in type(part).__name__ and part.p > value
    ]
    if not found:
        now.refuse("its modules drop nothing out")
    for part in found:
        part.p = value
