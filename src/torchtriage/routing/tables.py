"""The rows of the station's tables that a query can meet: who goes first, what to ask, what to answer."""

from __future__ import annotations

import os
from typing import Literal

from msgspec import Struct

from torchtriage.catalog.walk import ending
from torchtriage.core.plan import Stage
from torchtriage.core.query import ClaimKind, PressureKind

HERE = os.path.dirname(__file__)  # noqa: PTH120 - see catalog/walk.py


class Row(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a table; a misspelt column is an error."""


class ClaimRow(Row, frozen=True):
    """A way to assert something. span: what the claim holds, the cure that it names, the clause, or its own words."""

    kind: ClaimKind
    span: Literal["cure", "clause", "frame"]
    phrases: tuple[str, ...]
    answer: str


class PressureRow(Row, frozen=True):
    """A reason to skip the diagnosis: what the user says, and how an answer excuses itself (excuse, drafts).

    reality, do: what is so instead, and what to do about it.
    """

    kind: PressureKind
    excuse: str
    reality: str
    do: str
    phrases: tuple[str, ...]
    drafts: tuple[str, ...]

    @property
    def answer(self) -> str:
        return f"{self.reality} {self.do}"


class QuestionRow(Row, frozen=True):
    """A query that can mean several things, and the one question that tells them apart."""

    name: str
    phrases: tuple[str, ...]
    question: str
    options: tuple[str, ...]


class ReferralRow(Row, frozen=True):
    """What is not ours. decides: it holds even when a symptom was heard; unless: words that make it ours again."""

    refer_to: str
    phrases: tuple[str, ...]
    because: str
    decides: bool = False
    unless: tuple[str, ...] = ()


class StepRow(Row, frozen=True):
    """A step to the specialist of SYMPTOM; what is not said is taken from the symptoms heard in that room.

    opens_on: for a TREAT step; empty there means the faults that could explain what was heard.
    """

    symptom: str
    because: str
    stage: Stage | None = None
    opens_on: tuple[str, ...] = ()


class SequenceRow(Row, frozen=True):
    """Who goes first when several things were heard together.

    heard: all of these, each a group or a symptom. settles: groups or symptoms that then need no step of their own.
    instead_of: the specialist that one wrongly goes to first.
    """

    name: str
    heard: tuple[str, ...]
    because: str
    steps: tuple[StepRow, ...]
    settles: tuple[str, ...] = ()
    instead_of: str | None = None


class DiagnosisRow(Row, frozen=True):
    """Diagnosis first: when ISSUE was heard, its own room diagnoses; TREAT waits for what that shows.

    A treating specialist joins the plan only where the query touches its subject.
    """

    name: str
    issue: str
    because: str
    treat: tuple[StepRow, ...]
    instead_of: str | None = None


class Precedence(Row, frozen=True):
    """precedence.toml. groups: names for several symptoms; rank: the specialists' order within one stage."""

    groups: dict[str, tuple[str, ...]]
    rank: tuple[str, ...]
    sequence: tuple[SequenceRow, ...]
    diagnosis: tuple[DiagnosisRow, ...]


class RoomRow(Row, frozen=True):
    """A specialist's room, for who is sent there without a symptom: its reason, what to collect, its faults."""

    specialist: str
    why: str
    collect: tuple[str, ...]
    faults: tuple[str, ...]


def files(folder: str = HERE) -> tuple[str, ...]:
    """All tables of the station."""
    return tuple(ending(folder, ".toml"))
