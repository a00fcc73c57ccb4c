"""The ledger of facts: what sheets and topics claim, and what each claim stands on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path

import msgspec
from msgspec import Struct

from torchtriage.core.errors import TriageError


class Basis(Enum):
    """How a fact is known: measured on the installed torch, read in its sources, or in a document."""

    MEASURED = "measured"
    SOURCE = "source"
    DOCUMENT = "document"


class Fact(Struct, frozen=True, forbid_unknown_fields=True):
    """One claim. source, version: of a document, where it stands and of which version it speaks."""

    says: str
    basis: Basis
    source: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        if (self.basis is Basis.DOCUMENT) != bool(self.source and self.version):
            raise ValueError("a document, and only a document, has a source and a version")


def read(folder: Path) -> dict[str, Fact]:
    """The facts of the skill whose files are in FOLDER by their ids; raises TriageError for a broken ledger."""
    path = folder / "facts.toml"
    if not path.exists():
        return {}
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), dict[str, Fact])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise TriageError(f"broken ledger of facts: {error}", str(path), "Mend the table that it names.") from error


def written(facts: Mapping[str, Fact]) -> str:
    """The ledger as an agent reads it."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Mapping[str, Fact]) -> Iterator[str]:
    yield "# Facts"
    yield ""
    yield "Every number of this skill. Measured and source: a test takes it again from the installed torch."
    yield ""
    yield "| fact | known by |"
    yield "|---|---|"
    for fact in facts.values():
        known = f"{fact.source} ({fact.version})" if fact.source else fact.basis.value
        yield f"| {fact.says} | {known} |"
