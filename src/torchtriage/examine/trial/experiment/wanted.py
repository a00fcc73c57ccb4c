"""What is experimented on, and what is tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torchtriage.examine.trial.experiment.arms import Arm
from torchtriage.examine.trial.leg.execute import Ended, Leg, execute, say

BRANCHED = frozenset(("sanity", "stability"))
"""Recipes whose trials are forks of the job."""
MEASURED = frozenset(("speed", "memory"))
"""Recipes that measure what a step takes, in legs."""


@dataclass(frozen=True)
class Wanted:
    """What is experimented on. steps: of a branch; budget: seconds in all; probes, interventions: the rooms' folders.
    arms: that are tried besides those of the recipes. starting: names of interventions that must be there when the job
    starts, so that each needs a leg of its own. card: the simulated card that the job runs on, as JSON, if it does.

    execute: runs the leg; say: is told what is tried.
    """

    command: tuple[str, ...]
    folder: Path
    recipes: frozenset[str] = BRANCHED
    steps: int = 64
    budget: float = 300.0
    probes: tuple[Path, ...] = ()
    interventions: tuple[Path, ...] = ()
    arms: tuple[Arm, ...] = ()
    starting: frozenset[str] = frozenset()
    card: str | None = None
    execute: Callable[[Leg], Ended] = execute
    say: Callable[[str], None] = say

    @property
    def in_legs(self) -> tuple[Arm, ...]:
        """Arms that are tried in legs: all of them where it is asked what a step takes."""
        return tuple(arm for arm in self.arms if self.recipes & MEASURED or self.starting & dict(arm.changes).keys())

    @property
    def in_branches(self) -> tuple[Arm, ...]:
        return tuple(arm for arm in self.arms if arm not in self.in_legs)
