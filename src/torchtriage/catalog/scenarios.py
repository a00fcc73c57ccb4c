"""The rooms' labelled reports: what users write, and where it must lead. Not in the installed package.

An agent under test must not read the answers, so only a checkout of the repository has them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias
from zlib import crc32

import msgspec
from msgspec import Struct

from torchtriage.catalog.walk import SOURCE
from torchtriage.core.errors import TriageError

Kind: TypeAlias = Literal["plan", "question", "referral"]
FIFTH = 5


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """What one user wrote, and the route that an expert gives it.

    also: other routes that an expert would accept. also_kinds: other kinds. tags: what the report tries (a language,
    a pressure, a lure).
    """

    text: str
    kind: Kind = "plan"
    route: tuple[str, ...] = ()
    also: tuple[tuple[str, ...], ...] = ()
    also_kinds: tuple[Kind, ...] = ()
    refer_to: str | None = None
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.kind == "plan") != bool(self.route) or (self.kind != "referral" and self.refer_to):
            raise ValueError(f"report {self.text[:60]!r}: a route belongs to a plan, refer_to to a referral")

    @property
    def held(self) -> bool:
        """Whether it is kept back from everything that learns: every fifth, by a checksum of its text."""
        return crc32(self.text.encode()) % FIFTH == 0


def reports(folder: str | Path = SOURCE) -> tuple[Report, ...]:
    """The reports of every scenarios.toml under FOLDER; raises TriageError where there is none."""
    found = [report for path in sorted(Path(folder).rglob("scenarios.toml")) for report in _read(path)]
    if not found:
        raise TriageError("no labelled reports", str(folder), "Use a checkout: they are left out of the package.")
    return tuple(found)


def scenarios(folder: str | Path = SOURCE) -> tuple[Report, ...]:
    """The rooms' exact scenarios, as reports: each of them is held to its route by a test."""
    rows = [row for path in sorted(Path(folder).rglob("scenarios.toml")) for row in _exact(path)]
    return tuple(
        Report(row["query"], row.get("kind", "plan"), tuple(row.get("route", ())), refer_to=row.get("refer_to"))
        for row in rows
    )


def _exact(path: Path) -> list[dict[str, Any]]:
    table = _table(path)
    return [*table.get("utterance", []), *table.get("scenario", [])]


def _table(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


def _read(path: Path) -> tuple[Report, ...]:
    try:
        return msgspec.convert(_table(path).get("report", []), tuple[Report, ...])
    except ValueError as error:
        raise TriageError(f"broken table: {error}", str(path), "Mend the report that it names.") from error
