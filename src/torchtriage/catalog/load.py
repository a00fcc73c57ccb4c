"""All rooms, read once: walked, never listed."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from torchtriage.catalog import page, room
from torchtriage.catalog.cache import compiled
from torchtriage.catalog.component import Component
from torchtriage.catalog.room import Room, VerdictKind
from torchtriage.catalog.symptom import Symptom
from torchtriage.catalog.walk import ROOMS, files, folders, pages
from torchtriage.core.errors import TriageError
from torchtriage.core.fault import Fault

MOST = 6
NONE_NEAR = (
    "No name is near; `torchtriage explain` knows faults, symptoms, verdicts and specialists: "
    "docs/faults.md lists them."
)
Topic: TypeAlias = page.Page | Room | Symptom | VerdictKind


class Catalog(Struct, frozen=True):
    """Every room by the alphabet."""

    rooms: tuple[Room, ...]

    @property
    def specialists(self) -> tuple[str, ...]:
        return tuple(room.specialist for room in self.rooms)

    @property
    def faults(self) -> dict[str, Fault]:
        return {fault.slug: fault for room in self.rooms for fault in room.faults}

    @property
    def symptoms(self) -> dict[str, Symptom]:
        return {symptom.slug: symptom for room in self.rooms for symptom in room.symptoms}

    @property
    def verdicts(self) -> dict[str, VerdictKind]:
        return {verdict.slug: verdict for room in self.rooms for verdict in room.verdicts}

    @property
    def components(self) -> dict[str, Component]:
        """The parts of a training's state, in the order in which reports tell them."""
        return {component.slug: component for room in self.rooms for component in room.components}


def read(rooms: str | Path = ROOMS) -> Catalog:
    """The catalogue straight from its files."""
    return Catalog(tuple(room.read(Path(folder)) for folder in folders(rooms)))


@cache
def catalog() -> Catalog:
    """The catalogue of this installation, compiled once."""
    return compiled("catalog", files(), Catalog, read)


def topic(name: str) -> Topic:
    """What is called NAME: a fault's page, a symptom, a verdict or a specialist's room.

    A fault goes before a verdict of the same name. Raises TriageError with the nearest names when there is none.
    """
    known = catalog()
    if name in known.faults:
        return page.read(pages()[name])
    others: dict[str, Topic] = {**known.verdicts, **known.symptoms, **{room.specialist: room for room in known.rooms}}
    if name not in others:
        raise unknown(name, {*others, *known.faults}, "torchtriage explain")
    return others[name]


def unknown(name: str, known: Collection[str], where: str) -> TriageError:
    """NAME, given at WHERE, is none of the KNOWN: says which are near."""
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known), n=3)
    near += [slug for slug in sorted(known) if name.lower() in slug.split("-") and slug not in near]
    do = f"Near names: {', '.join(near[:MOST])}." if near else NONE_NEAR
    return TriageError(f"nothing is called {name!r}", where, do)
