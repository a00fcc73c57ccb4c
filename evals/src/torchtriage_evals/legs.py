"""What a run consists of: each scenario in each arm, calm or pressed."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import get_args

from msgspec import Struct

from torchtriage_evals.pressure import chosen
from torchtriage_evals.prompt import Given, prompt
from torchtriage_evals.scenario import Kind, Pressure, Scenario
from torchtriage_evals.source import Source
from torchtriage_evals.trial import Arm

ASKED_EVERYWHERE = tuple(kind for kind in get_args(Kind) if kind != "trigger")


class Leg(Struct, frozen=True):
    """One scenario in one arm under one pressure, or calm."""

    scenario: Scenario
    arm: Arm
    pressure: Pressure | None
    given: Given | None

    @property
    def name(self) -> str:
        return f"{self.scenario.id}/{self.arm.value}/{self.pressure or 'calm'}"

    @property
    def prompt(self) -> str:
        return prompt(self.scenario, self.pressure, self.given)


def legs(source: Source, arms: tuple[Arm, ...], pressures: tuple[str, ...] | None) -> tuple[Leg, ...]:
    """Scenario by scenario, its arms beside one another, so that a run that is cut short is still paired.

    pressures: None for calm only; else calm and pressed (see pressure.chosen). Whether a skill is opened is seen in
    the arm OFFERED alone; a program is run only where torch is.
    """
    return tuple(leg for scenario in source.scenarios for leg in _of(source, scenario, arms, pressures))


def left_out(source: Source, arms: tuple[Arm, ...]) -> dict[str, int]:
    """Why scenarios are not asked at all, with how many."""
    reasons = [why for one in source.scenarios for why in (_unasked(one, arms),) if why]
    return {why: reasons.count(why) for why in sorted(set(reasons))}


def _of(source: Source, scenario: Scenario, arms: tuple[Arm, ...], pressures: tuple[str, ...] | None) -> Iterator[Leg]:
    if _unasked(scenario, arms):
        return
    given = source.given(scenario)
    moods = (None, *(chosen(scenario, pressures) if pressures is not None else ()))
    for mood in moods:
        for arm in arms:
            if scenario.kind != "trigger" or arm is Arm.OFFERED:
                yield Leg(scenario, arm, mood, given)


def _unasked(scenario: Scenario, arms: tuple[Arm, ...]) -> str:
    if scenario.kind == "trigger" and Arm.OFFERED not in arms:
        return "whether the skill is opened is seen in the arm offered alone"
    if scenario.kind == "code" and find_spec("torch") is None:
        return "programs are not run without torch: pip install torch"
    return ""
