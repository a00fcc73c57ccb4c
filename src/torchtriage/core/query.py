"""What the user says. A claim points at where to look; it proves nothing."""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

Field: TypeAlias = str | int | float | list[int]


class ClaimKind(Enum):
    """What sort of thing the user asserts."""

    GUESSED_CAUSE = "guessed-cause"
    PROPOSED_CURE = "proposed-cure"
    TRIED_FIX = "tried-fix"
    AUTHORITY = "authority"


class PressureKind(Enum):
    """Why one might be tempted to skip the diagnosis: one for each rationalisation of the source documents."""

    TIME = "time"
    AUTHORITY = "authority"
    SUNK_COST = "sunk-cost"
    EXHAUSTION = "exhaustion"
    SUGGESTION = "suggestion"
    CONFIDENCE = "confidence"
    COMPLEXITY = "complexity"
    TRIVIALITY = "triviality"
    HELPFULNESS = "helpfulness"


class Span(Struct, frozen=True):
    """A piece of a text: text[start:end], in characters from 0."""

    start: int
    end: int
    text: str

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end or len(self.text) != self.end - self.start:
            raise ValueError(f"span {self.start}..{self.end} does not hold {self.text!r}")


class Mention(Span, frozen=True, kw_only=True):
    """A symptom heard in the query."""

    symptom: str
    specialist: str


class Claim(Span, frozen=True, kw_only=True):
    """Something asserted: it can say where to look, never what is true, and is not Evidence.

    answer: the sentence that meets it without taking it for a fact.
    """

    kind: ClaimKind
    answer: str


class Pressure(Span, frozen=True, kw_only=True):
    """A reason to hurry past the diagnosis. It is answered; it never changes the route."""

    kind: PressureKind
    answer: str


class Decoded(Span, frozen=True, kw_only=True):
    """An error message taken apart: which signature matched, its fields, the faults that it can mean.

    says: the message in plain words, without a full stop; empty where nobody has put it into words.
    """

    signature: str
    fields: dict[str, Field]
    faults: tuple[str, ...]
    says: str = ""


class Leaning(Struct, frozen=True):
    """Where the words as a whole lean, learned from labelled reports: an opinion with a share, and not Evidence.

    to: a specialist, "question", or "referral" and the field it belongs to. share: of all that the words could mean,
    0 to 1. words: those that weighed most. rooms: for each specialist, how likely it is wanted on the route at all.
    """

    to: str
    share: float
    words: tuple[str, ...]
    rooms: dict[str, float] = {}


class Query(Struct, frozen=True, tag_field="kind", tag="query"):
    """The user's words, kept whole, with what was heard in them.

    leaning: None where nothing was learned. passed_over: how many characters of a very long text were not
    listened to for phrases.
    """

    text: str
    symptoms: tuple[Mention, ...] = ()
    claims: tuple[Claim, ...] = ()
    pressures: tuple[Pressure, ...] = ()
    decoded: tuple[Decoded, ...] = ()
    leaning: Leaning | None = None
    passed_over: int = 0

    def __post_init__(self) -> None:
        heard: tuple[Span, ...] = (*self.symptoms, *self.claims, *self.pressures, *self.decoded)
        for span in heard:
            if self.text[span.start : span.end] != span.text:
                raise ValueError(f"{span.text!r} does not stand at {span.start}..{span.end} of the query")
