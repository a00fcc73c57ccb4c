"""The shape of everything that the station knows by heart."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from torchtriage.catalog.symptom import Signature, Symptom
from torchtriage.routing import tables
from torchtriage.routing.phrases import Trie, Vocabulary
from torchtriage.routing.signatures import Anchor

Layer: TypeAlias = Literal[
    "symptom",
    "question",
    "referral",
    "unless",
    "decoy",
    "pressure",
    "claim",
    "cure",
    "curing",
    "not",
    "fixed-before",
    "fixed-after",
    "manner",
]
SWALLOWING = frozenset({"symptom", "question", "referral", "decoy", "pressure"})


class Meaning(Struct, frozen=True, array_like=True):
    """What a phrase stands for: a symptom by its slug, anything else by the number of its row."""

    layer: Layer
    name: str


class Explaining(Struct, frozen=True, array_like=True):
    """A fault that can cause a symptom, and whose fault it is."""

    fault: str
    specialist: str


class Lexicon(Struct, frozen=True):
    """symptoms: without their phrases. explained: symptom → the faults whose pages explain it.
    topics: word → what it is about.

    meanings: by the numbers that the trie gives them. swallows: whether their hits swallow shorter ones.
    """

    vocabulary: Vocabulary
    trie: Trie
    meanings: tuple[Meaning, ...]
    swallows: tuple[bool, ...]
    signatures: tuple[tuple[str, Signature], ...]
    anchors: tuple[Anchor, ...]
    symptoms: dict[str, Symptom]
    explained: dict[str, tuple[Explaining, ...]]
    rooms: dict[str, tables.RoomRow]
    topics: dict[str, tuple[str, ...]]
    claims: tuple[tables.ClaimRow, ...]
    pressures: tuple[tables.PressureRow, ...]
    questions: tuple[tables.QuestionRow, ...]
    referrals: tuple[tables.ReferralRow, ...]
    precedence: tables.Precedence
