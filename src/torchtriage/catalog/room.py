"""One specialist's room as data: what it listens for, the faults and parts of state it knows, the verdicts it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from torchtriage.catalog import page
from torchtriage.catalog.component import Component
from torchtriage.catalog.symptom import Symptom
from torchtriage.core.errors import TriageError
from torchtriage.core.fault import Fault, Sign

T = TypeVar("T")


class VerdictKind(Struct, frozen=True):
    """A verdict that the room's readings can give.

    unseen: for one that no detector of this version can see, what would be needed to see it.
    """

    slug: str
    specialist: str
    title: str
    signs: tuple[Sign, ...] = ()
    unseen: str | None = None


class Room(Struct, frozen=True):
    """Everything a specialist declares outside of Python; what is not there is empty.

    does: the specialist's work, in one sentence. why: the reason that it is a specialist's.
    """

    specialist: str
    does: str = ""
    why: str = ""
    symptoms: tuple[Symptom, ...] = ()
    faults: tuple[Fault, ...] = ()
    verdicts: tuple[VerdictKind, ...] = ()
    components: tuple[Component, ...] = ()


def read(folder: Path) -> Room:
    """Raises TriageError that names the file and what is wrong with it."""
    specialist = page.room_name(folder)
    room = _converted(folder / "room.toml", {"specialist": specialist}, Room)
    return replace(
        room,
        symptoms=_rows(folder / "symptoms.toml", specialist, Symptom),
        faults=tuple(page.read(path).fault for path in sorted(folder.glob("faults/*.md"))),
        verdicts=_rows(folder / "verdicts.toml", specialist, VerdictKind),
        components=_rows(folder / "components.toml", specialist, Component),
    )


def _rows(path: Path, specialist: str, kind: type[T]) -> tuple[T, ...]:
    """One noun for each table of the file, which is named by its slug."""
    return tuple(
        _converted(path, {"slug": slug, "specialist": specialist}, kind, row) for slug, row in _table(path).items()
    )


def _converted(path: Path, given: dict[str, str], kind: type[T], row: dict[str, Any] | None = None) -> T:
    said = _table(path) if row is None else row
    try:
        if "signs" in said:
            said["signs"] = [msgspec.to_builtins(Sign.parse(sign)) for sign in said["signs"]]
        return msgspec.convert({**said, **given}, kind)
    except ValueError as error:  # msgspec's ValidationError is one
        raise _broken(path, error) from error


def _table(path: Path) -> dict[str, Any]:
    import tomllib  # here, not above: a cold `ask` reads the cache and no TOML

    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> TriageError:
    return TriageError(f"broken table: {error}", str(path), "Mend the file; CONTRIBUTING.md shows its form.")
