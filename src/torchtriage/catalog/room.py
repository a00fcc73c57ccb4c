"""One specialist's room as data: what it listens for, the faults it knows, the verdicts it gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from torchtriage.catalog import page
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
    """Everything a specialist declares outside of Python; what is not there is empty."""

    specialist: str
    symptoms: tuple[Symptom, ...] = ()
    faults: tuple[Fault, ...] = ()
    verdicts: tuple[VerdictKind, ...] = ()


def read(folder: Path) -> Room:
    """Raises TriageError that names the file and what is wrong with it."""
    specialist = page.room_name(folder)
    verdicts = _table(folder / "verdicts.toml")
    for row in verdicts.values():
        row["signs"] = [msgspec.to_builtins(Sign.parse(sign)) for sign in row.get("signs", ())]
    return Room(
        specialist,
        _rows(folder / "symptoms.toml", _table(folder / "symptoms.toml"), specialist, Symptom),
        tuple(page.read(path).fault for path in sorted(folder.glob("faults/*.md"))),
        _rows(folder / "verdicts.toml", verdicts, specialist, VerdictKind),
    )


def _table(path: Path) -> dict[str, dict[str, Any]]:
    import tomllib  # here, not above: a cold `ask` reads the cache and no TOML

    if not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise _broken(path, error) from error


def _rows(path: Path, table: dict[str, dict[str, Any]], specialist: str, kind: type[T]) -> tuple[T, ...]:
    try:
        return tuple(
            msgspec.convert({**row, "slug": slug, "specialist": specialist}, kind) for slug, row in table.items()
        )
    except msgspec.ValidationError as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> TriageError:
    return TriageError(f"broken table: {error}", str(path), "Mend the file; CONTRIBUTING.md shows its form.")
