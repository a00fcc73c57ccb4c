"""The pack's own texts as they are written: with the ids of facts, and with blocks that say what they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torchtriage.interface.skillpack.pack import skills

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.S | re.M)
HEAD = re.compile(r"\A---\n.*?^---$", re.S | re.M)
IDS = re.compile(r"<!--(?! table:)(.*?)-->", re.S)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, and for Python whether it is wrong, right, or needs what is not here."""

    name: str
    language: str
    kind: str
    code: str

    def __str__(self) -> str:
        return self.name


def texts() -> list[Path]:
    """The sheets and topics of every skill that has them."""
    found = (path for folder in skills().values() for path in (folder / "SKILL.md", *folder.glob("topics/*.md")))
    return sorted(path for path in found if path.exists())


def blocks(path: Path) -> Iterator[Block]:
    for number, found in enumerate(FENCE.finditer(path.read_text(encoding="utf-8")), start=1):
        language, _, kind = found.group(1).strip().partition(" ")
        yield Block(f"{path.parent.parent.name}/{path.name}#{number}", language, kind, found.group(2))


def prose(path: Path) -> list[str]:
    """The lines outside of the head and of blocks."""
    text = HEAD.sub("", path.read_text(encoding="utf-8"))
    return FENCE.sub("", text).splitlines()


def ids(line: str) -> list[str]:
    """The facts that LINE stands on."""
    return [each.strip() for found in IDS.findall(line) for each in found.split(",") if each.strip()]
