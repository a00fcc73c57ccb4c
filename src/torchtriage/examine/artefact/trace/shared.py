"""What is kept of one rank's summary where thousands of them are to be held at once."""

from __future__ import annotations

from sys import intern

from msgspec.structs import replace

from torchtriage.examine.artefact.trace.meetings import thinned
from torchtriage.examine.artefact.trace.rank import MEETINGS, STEPS, RankSummary, StepOf

FULL = 2048
"""Ranks up to which all is kept that their summaries have; more of them share as many collectives and steps."""


def shared(told: RankSummary, ranks: int) -> RankSummary:
    """TOLD with its part of what so many RANKS may keep, in words of which there is one copy for all."""
    kept = thinned(list(told.met), _part(MEETINGS, ranks))
    met = tuple(replace(each, operation=intern(each.operation), group=intern(each.group)) for each in kept)
    return replace(told, met=met, steps=_fewer(told.steps, _part(STEPS, ranks)))


def _part(whole: int, ranks: int) -> int:
    return min(max(whole * FULL // ranks, 8), whole)


def _fewer(steps: tuple[StepOf, ...], most: int) -> tuple[StepOf, ...]:
    """At most so many, the same on every rank."""
    skip = 1
    while len(steps) > most and skip < 2**20:
        skip *= 2
        steps = tuple(step for step in steps if step.number % skip == 0)
    return steps
