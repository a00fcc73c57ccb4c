"""One program with a planted bug, read from its folder; nothing is registered anywhere, folders are walked."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

FOLDER = Path(__file__).parent


class Edit(Struct, frozen=True, forbid_unknown_fields=True):
    """OLD, which the program has exactly once, becomes NEW."""

    old: str
    new: str


class Wrong(Struct, frozen=True, forbid_unknown_fields=True):
    """A patch that seems right. told: a part of what the check says about it; why: why it seems right and is not."""

    why: str
    told: str
    edit: tuple[Edit, ...]


class Patches(Struct, frozen=True, forbid_unknown_fields=True):
    """A folder's patches.toml. told: a part of what the check says about the broken program."""

    told: str
    reference: tuple[Edit, ...]
    wrong: tuple[Wrong, ...]


class Program(Struct, frozen=True):
    """What an agent is given is BROKEN alone; whether its answer is right is what CHECK says after running it."""

    slug: str
    broken: str
    check: Path
    patches: Patches

    @property
    def mended(self) -> str:
        """The program after the reference patch."""
        return edited(self.broken, self.patches.reference, self.slug)

    @property
    def patch(self) -> str:
        """The reference patch as a unified diff."""
        before, after = self.broken.splitlines(keepends=True), self.mended.splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, "a/program.py", "b/program.py"))

    def wrongly(self, wrong: Wrong) -> str:
        """The program after a patch that only seems to mend it."""
        return edited(self.broken, wrong.edit, self.slug)


def edited(text: str, edits: tuple[Edit, ...], slug: str) -> str:
    """TEXT after EDITS; raises ValueError where an edit's old text is not there exactly once."""
    for edit in edits:
        if (found := text.count(edit.old)) != 1:
            raise ValueError(f"{slug}: {edit.old!r} is there {found} times: an edit replaces what is there once")
        text = text.replace(edit.old, edit.new)
    return text


def program(slug: str) -> Program:
    """The program of that name; raises ValueError, with those that there are, where there is none."""
    folder = FOLDER / slug
    if slug not in slugs():
        raise ValueError(f"no program {slug!r}; there are {', '.join(slugs())}")
    table = tomllib.loads((folder / "patches.toml").read_text(encoding="utf-8"))
    patches = msgspec.convert(table, Patches)
    return Program(slug, (folder / "broken.py").read_text(encoding="utf-8"), folder / "check.py", patches)


def slugs() -> tuple[str, ...]:
    """The names of all programs, in order."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/patches.toml")))
