"""Where to look, in what order. None of the three routes has a place for advice."""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum
from functools import total_ordering
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.some import Some

EXAMINATIONS = {"check": "torchtriage check train.py", "run": "torchtriage run -- train.py"}
"""The commands that examine anything, the cheaper one first."""
_RUN = re.compile(r"torchtriage run(?: --symptom \S+)? -- (?P<job>.*)")


@total_ordering
class Stage(Enum):
    """Setup before optimisation, structure before customisation, diagnosis before cure."""

    SETUP = "setup"
    STRUCTURE = "structure"
    DIAGNOSE = "diagnose"
    CUSTOMISE = "customise"
    TREAT = "treat"

    def __lt__(self, other: Stage) -> bool:
        order = list(Stage)
        return order.index(self) < order.index(other)


class Step(Struct, frozen=True, tag_field="kind", tag="step"):
    """One visit to one specialist.

    because: why this specialist, at this point of the plan.
    collect: facts of the user's set-up that the specialist needs before judging.
    rule_out: the faults that could explain the symptom (slugs): the differential diagnosis.
    examine: the cheapest commands that tell those faults apart; slugs in them, never the user's words.
    read: the page to read, for a how-to query that has no fault.
    opens_on: the faults and verdicts of which one must have been shown first; exactly the TREAT steps have some.
    """

    specialist: str
    stage: Stage
    because: str
    collect: tuple[str, ...] = ()
    rule_out: tuple[str, ...] = ()
    examine: tuple[str, ...] = ()
    read: str | None = None
    opens_on: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.stage is Stage.TREAT) != bool(self.opens_on):
            raise ValueError(
                f"{self.specialist}, stage {self.stage.value}, opens_on {list(self.opens_on)}: "
                "exactly the treating steps wait for a named fault or verdict"
            )


def remaining(step: Step, taken: Collection[str], *, ranks: int = 1) -> Step:
    """STEP without the commands that were TAKEN ("check", "run") already, of a job of so many RANKS.

    Where none remains of a step that had some, the other examination takes their place, if that was not taken either.
    """
    left = tuple(command for command in step.examine if not _is_taken(command, taken, ranks))
    if not left and step.examine:
        left = tuple(command for verb, command in EXAMINATIONS.items() if verb not in taken)[:1]
    return step if left == step.examine else replace(step, examine=left)


def _is_taken(command: str, taken: Collection[str], ranks: int) -> bool:
    run = _RUN.fullmatch(command)
    if run is None:
        return "check" in taken and command.startswith("torchtriage check ")
    return "run" in taken and (ranks > 1 or "torchrun" not in run["job"])


class Plan(Struct, frozen=True, tag_field="kind", tag="plan"):
    """Steps in order of execution."""

    steps: Some[Step]

    def __post_init__(self) -> None:
        stages = [step.stage for step in self.steps]
        visits = [(step.specialist, step.stage) for step in self.steps]
        if not stages:
            raise ValueError("a plan needs at least one step")
        if stages != sorted(stages):
            raise ValueError(f"stages decrease: {[stage.value for stage in stages]}")
        if len(set(visits)) != len(visits):
            raise ValueError(f"a specialist is visited twice in one stage: {[name for name, _ in visits]}")

    @property
    def route(self) -> tuple[str, ...]:
        """The specialists by first appearance, without repeats."""
        return tuple(dict.fromkeys(step.specialist for step in self.steps))

    def open(self, shown: Collection[str]) -> tuple[Step, ...]:
        """The steps that may be taken now, given the slugs of the faults and verdicts SHOWN by evidence."""
        return tuple(step for step in self.steps if not step.opens_on or set(step.opens_on) & set(shown))


class Question(Struct, frozen=True, tag_field="kind", tag="question"):
    """The one thing to ask before a plan can be made, with the answers that matter."""

    question: str
    options: Some[str]

    def __post_init__(self) -> None:
        if not self.question or not self.options:
            raise ValueError(f"question {self.question!r}: a question needs its words and its options")


class Referral(Struct, frozen=True, tag_field="kind", tag="referral"):
    """Not ours: the pack or field that it belongs to, and why."""

    refer_to: str
    because: str

    def __post_init__(self) -> None:
        if not self.refer_to or not self.because:
            raise ValueError(f"referral to {self.refer_to!r} because {self.because!r}: both are needed")


Route: TypeAlias = Plan | Question | Referral
