"""One program, with a planted bug or sound, read from its folder; nothing is registered, folders are walked.

A folder has broken.py or sound.py, patches.toml and check.py.
"""

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
    """A folder's patches.toml. told: a part of what the check says about the broken program.

    other: right patches that are none of the reference, which have to pass as well.

    Of a sound program neither told nor reference; its wrong patches are needless ones that do harm.
    """

    wrong: tuple[Wrong, ...]
    told: str = ""
    reference: tuple[Edit, ...] = ()
    other: tuple[tuple[Edit, ...], ...] = ()


class Program(Struct, frozen=True):
    """What an agent is given is TEXT alone; whether its answer is right is what CHECK says after running it."""

    slug: str
    text: str
    check: Path
    patches: Patches

    @property
    def sound(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.patches.reference

    @property
    def mended(self) -> str:
        """The program after the reference patch; a sound one as it is."""
        return edited(self.text, self.patches.reference, self.slug)

    @property
    def patch(self) -> str:
        """The reference patch as a unified diff."""
        before, after = self.text.splitlines(keepends=True), self.mended.splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, "a/program.py", "b/program.py"))

    @property
    def otherwise(self) -> tuple[str, ...]:
        """The program after each of the other right patches."""
        return tuple(edited(self.text, edits, self.slug) for edits in self.patches.other)

    def wrongly(self, wrong: Wrong) -> str:
        """The program after a patch that only seems to mend it."""
        return edited(self.text, wrong.edit, self.slug)


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
    path = folder / ("broken.py" if patches.reference else "sound.py")
    return Program(slug, path.read_text(encoding="utf-8"), folder / "check.py", patches)


def slugs() -> tuple[str, ...]:
    """The names of all programs, in order."""
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/patches.toml")))
