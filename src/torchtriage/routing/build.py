"""How the lexicon is made from the rooms' symptoms and the station's tables; only when one of them has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from torchtriage.catalog.load import Catalog
from torchtriage.catalog.load import read as read_catalog
from torchtriage.catalog.room import Room
from torchtriage.core.errors import TriageError
from torchtriage.routing import tables
from torchtriage.routing.lexicon import SWALLOWING, Explaining, Layer, Lexicon, Meaning
from torchtriage.routing.phrases import Vocabulary, compile_phrases
from torchtriage.routing.signatures import anchors
from torchtriage.routing.words import fold, stem

T = TypeVar("T")

HERE = Path(tables.HERE)


class Words(tables.Row, frozen=True):
    """words.toml: how single words are read, and the frames that take a symptom back.

    decoys: phrases that sound like a symptom and mean something else. not_before: "no" before a symptom.
    fixed_before, fixed_after: "we fixed" before it, "is gone" after it. manners: courtesies, which say nothing.
    topics: what single words are about.
    """

    light: tuple[str, ...]
    spellings: dict[str, tuple[str, ...]]
    classes: dict[str, tuple[str, ...]]
    decoys: tuple[str, ...]
    not_before: tuple[str, ...]
    fixed_before: tuple[str, ...]
    fixed_after: tuple[str, ...]
    manners: tuple[str, ...]
    topics: dict[str, tuple[str, ...]]


class Claims(tables.Row, frozen=True):
    """claims.toml; cures: the names of what people want to do about it. curing: what comes after is what is seen."""

    curing: tuple[str, ...]
    cures: tuple[str, ...]
    claim: tuple[tables.ClaimRow, ...]


class Pressures(tables.Row, frozen=True):
    """pressures.toml."""

    pressure: tuple[tables.PressureRow, ...]


class Questions(tables.Row, frozen=True):
    """questions.toml; the last row is asked when nothing at all was heard."""

    question: tuple[tables.QuestionRow, ...]


class Referrals(tables.Row, frozen=True):
    """referrals.toml."""

    referral: tuple[tables.ReferralRow, ...]


def read(name: str, kind: type[T], folder: Path = HERE) -> T:
    """The table NAME.toml as KIND; raises TriageError that names the file and what is wrong with it."""
    import tomllib

    path = folder / f"{name}.toml"
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return msgspec.convert(content, kind)
    except ValueError as error:
        raise broken(path, error) from error


def broken(path: Path, error: Exception) -> TriageError:
    """The error of a table that cannot be used."""
    return TriageError(f"broken table: {error}", str(path), "Mend the file; CONTRIBUTING.md shows its form.")


def build(folder: Path = HERE) -> Lexicon:
    """The lexicon straight from its files; raises TriageError where one is broken."""
    catalog = read_catalog()
    words, claims = read("words", Words, folder), read("claims", Claims, folder)
    pressures = read("pressures", Pressures, folder).pressure
    questions = read("questions", Questions, folder).question
    referrals = read("referrals", Referrals, folder).referral
    spoken = [
        *(("symptom", slug, symptom.phrases) for slug, symptom in catalog.symptoms.items()),
        *_numbered("question", [row.phrases for row in questions]),
        *_numbered("referral", [row.phrases for row in referrals]),
        *_numbered("unless", [row.unless for row in referrals]),
        *_numbered("pressure", [row.phrases for row in pressures]),
        *_numbered("claim", [row.phrases for row in claims.claim]),
        *_framing(words, claims),
    ]
    signatures = tuple((slug, each) for slug, symptom in catalog.symptoms.items() for each in symptom.signatures)
    known = vocabulary(words)
    try:
        trie = compile_phrases([phrases for *_, phrases in spoken], known)
    except ValueError as error:
        raise broken(folder, error) from error
    return Lexicon(
        vocabulary=known,
        trie=trie,
        meanings=tuple(Meaning(layer, name) for layer, name, _ in spoken),
        swallows=tuple(layer in SWALLOWING for layer, *_ in spoken),
        signatures=signatures,
        anchors=anchors(signatures),
        symptoms={slug: replace(symptom, phrases=(), signatures=()) for slug, symptom in catalog.symptoms.items()},
        explained=_explained(catalog),
        rooms={room.specialist: _room(room) for room in catalog.rooms},
        topics=_topics(words),
        claims=tuple(replace(row, phrases=()) for row in claims.claim),
        pressures=tuple(replace(row, phrases=(), drafts=()) for row in pressures),
        questions=tuple(replace(row, phrases=()) for row in questions),
        referrals=tuple(replace(row, phrases=(), unless=()) for row in referrals),
        precedence=read("precedence", tables.Precedence, folder),
    )


def vocabulary(words: Words) -> Vocabulary:
    """The reading of single words that the table of words describes."""
    classes: dict[str, dict[str, None]] = {}
    for name, members in words.classes.items():
        for member in members:
            classes.setdefault(stem(fold(member)), {})[f"<{name}>"] = None
    return Vocabulary(
        light=frozenset(map(fold, words.light)),
        spellings={fold(other): fold(word) for word, others in words.spellings.items() for other in others},
        classes={root: tuple(names) for root, names in sorted(classes.items())},
    )


def _room(room: Room) -> tables.RoomRow:
    """To be collected without a symptom: what each of the room's symptoms asks for first."""
    collect = dict.fromkeys(symptom.collect[0] for symptom in room.symptoms if symptom.collect)
    return tables.RoomRow(room.specialist, room.why, tuple(collect), tuple(fault.slug for fault in room.faults))


def _topics(words: Words) -> dict[str, tuple[str, ...]]:
    """Every word of a topic with its topics."""
    found: dict[str, dict[str, None]] = {}
    for topic, members in words.topics.items():
        for member in members:
            found.setdefault(fold(member), {})[topic] = None
    return {word: tuple(topics) for word, topics in sorted(found.items())}


def _framing(words: Words, claims: Claims) -> Iterator[tuple[Layer, str, tuple[str, ...]]]:
    yield "cure", "", claims.cures
    yield "curing", "", claims.curing
    yield "decoy", "", words.decoys
    yield "not", "", words.not_before
    yield "fixed-before", "", words.fixed_before
    yield "fixed-after", "", words.fixed_after
    yield "manner", "", words.manners


def _numbered(layer: Layer, rows: list[tuple[str, ...]]) -> list[tuple[Layer, str, tuple[str, ...]]]:
    return [(layer, str(number), phrases) for number, phrases in enumerate(rows)]


def _explained(catalog: Catalog) -> dict[str, tuple[Explaining, ...]]:
    faults = catalog.faults.values()
    return {
        slug: tuple(Explaining(fault.slug, fault.specialist) for fault in faults if slug in fault.explains)
        for slug in catalog.symptoms
    }
