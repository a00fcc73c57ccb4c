"""The shapes of the answers, from which the tools' output schemas are made. More fields may come; these stay."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic takes nested ones of typing from Python 3.12 on

Rows = list[dict[str, Any]]


class LeftOut(TypedDict):
    """What was too long for one answer: how many entries or characters of each field, and where the whole is."""

    fields: dict[str, int]
    whole: str


class Step(TypedDict):
    """One visit to one specialist. opens_on: faults or verdicts of which one must have been shown first."""

    specialist: str
    stage: Literal["setup", "structure", "diagnose", "customise", "treat"]
    because: str
    collect: Annotated[list[str], Field(description="facts of the user's set-up that are needed before judging")]
    rule_out: Annotated[list[str], Field(description="faults that could explain the symptom")]
    examine: Annotated[list[str], Field(description="the cheapest commands that tell those faults apart")]
    read: NotRequired[str | None]
    opens_on: list[str]


class Routed(TypedDict):
    """Where a query leads: a plan, one question, or a referral."""

    schema: int
    kind: Literal["plan", "question", "referral"]
    route: Annotated[list[str], Field(description="specialists in order")]
    steps: list[Step]
    symptoms: Rows
    claims: Annotated[Rows, Field(description="guesses and cures that the user names: heard, not taken for evidence")]
    pressures: list[str]
    answers: Rows
    decoded: Annotated[Rows, Field(description="error messages that were recognised, with their figures")]
    question: str | None
    options: list[str]
    refer_to: str | None
    left_out: NotRequired[LeftOut]


Finding = TypedDict(
    "Finding",
    {
        "fault": str,
        "specialist": str,
        "class": str,
        "severity": Literal["error", "warning", "info"],
        "confidence": str,
        "persona": str,
        "fingerprint": str,
        "title": str,
        "evidence": Annotated[Rows, Field(description="what was seen, where, and the figures")],
        "remedies": Annotated[Rows, Field(description="in order, each with how to verify it")],
    },
)


class Inconclusive(TypedDict):
    """What could not be seen, why, and what would unblock it. Silence is not health."""

    detector: str
    why: str
    unblock: str


class Checked(TypedDict):
    """What the source shows. files: how many were examined."""

    schema: int
    findings: list[Finding]
    inconclusive: list[Inconclusive]
    files: int
    left_out: NotRequired[LeftOut]


class Judged(TypedDict):
    """A case: what was asked, seen, measured and found."""

    schema: int
    query: dict[str, Any] | None
    route: dict[str, Any] | None
    findings: list[Finding]
    verdicts: Rows
    outcomes: Rows
    inconclusive: list[Inconclusive]
    measurements: dict[str, Any]
    open_steps: list[Step]
    left_out: NotRequired[LeftOut]


class Explained(TypedDict):
    """The page of a fault, a specialist, a symptom or a verdict."""

    schema: int
    kind: Literal["fault", "specialist", "symptom", "verdict"]
    left_out: NotRequired[LeftOut]


class Opened(TypedDict):
    """The steps that may be taken now."""

    schema: int
    kind: Literal["steps"]
    open_steps: list[Step]
    left_out: NotRequired[LeftOut]
