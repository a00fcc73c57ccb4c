"""What a project sets for itself: [tool.torchtriage] in its pyproject.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from torchtriage.core.errors import TriageError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

FORM = "docs/checking.md shows every setting."


class Choice(Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """Which findings are shown: slugs of faults and names of specialists; an empty select selects everything."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    persona: Literal["default", "pedantic"] | None = None


class Settings(Choice, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """The table. exclude: patterns of .gitignore's form. per_path: such a pattern → a choice of its own.

    target_torch: the oldest torch that the project supports, "2.4". baseline: a file, from the project's folder.
    """

    exclude: tuple[str, ...] = ()
    per_path: dict[str, Choice] = {}
    target_torch: str | None = None
    baseline: str | None = None


class Project(Struct, frozen=True, dict=True):
    """A project's folder and its settings; without a pyproject.toml the current folder, and none."""

    folder: Path
    settings: Settings = Settings()

    def passes_over(self, path: Path) -> bool:
        """Whether the project leaves PATH out, when it is found in a folder."""
        return self._excluded.match_file(self._within(path)) if self.settings.exclude else False

    def choices(self, path: str | None) -> list[Choice]:
        """What is set for PATH beside what is set for the whole project."""
        if path is None or not self.settings.per_path:
            return []
        name = self._within(Path(path))
        return [self.settings.per_path[pattern] for pattern, spec in self._patterns.items() if spec.match_file(name)]

    def _within(self, path: Path) -> str:
        return Path(os.path.relpath(path, self.folder)).as_posix()

    @cached_property
    def _excluded(self) -> GitIgnoreSpec:
        return _spec(self.settings.exclude)

    @cached_property
    def _patterns(self) -> dict[str, GitIgnoreSpec]:
        return {pattern: _spec([pattern]) for pattern in self.settings.per_path}


def _spec(patterns: Sequence[str]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)


def project(paths: Sequence[str], known: Collection[str]) -> Project:
    """The project that PATHS belong to: the nearest folder above all of them whose pyproject.toml has the table.

    KNOWN: what may be selected. Raises TriageError where the table cannot be read or names something else.
    """
    # Path.absolute() keeps the dots of ../B, and the folder that they leave would count as above it.
    folders = [Path(os.path.abspath(path)) for path in paths if path != "-"] or [Path.cwd()]  # noqa: PTH100
    top = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in folders]))
    for home in (top, *top.parents):
        file = home / "pyproject.toml"
        found = table(file) if file.is_file() else None
        if found is not None:
            return Project(home, _checked(found, file, known))
    return Project(next((home for home in (top, *top.parents) if is_top(home)), top))


def is_top(home: Path) -> bool:
    """Whether a project without settings begins in HOME."""
    return any((home / name).exists() for name in ("pyproject.toml", "setup.py", "requirements.txt", ".git"))


def table(file: Path) -> dict[str, Any] | None:
    """[tool.torchtriage] of FILE, unchecked; None where it has none. Raises TriageError where FILE cannot be read."""
    import tomllib

    try:
        tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool")
    except (OSError, ValueError) as error:
        raise TriageError(f"cannot be read: {error}", str(file), "Mend the file.") from error
    found = tools.get("torchtriage") if isinstance(tools, dict) else None
    if found is not None and not isinstance(found, dict):
        raise TriageError("[tool.torchtriage] is no table", str(file), FORM)
    return found


def _checked(given: dict[str, Any], file: Path, known: Collection[str]) -> Settings:
    try:
        settings = msgspec.convert(given, Settings)
    except msgspec.ValidationError as error:
        raise TriageError(f"[tool.torchtriage]: {error}", str(file), FORM) from error
    for pattern in (*settings.exclude, *settings.per_path):
        try:
            _spec([pattern])
        except (ValueError, re.error) as error:
            raise TriageError(f"[tool.torchtriage]: {pattern!r} is no pattern: {error}", str(file), FORM) from error
    for choice in (settings, *settings.per_path.values()):
        for name in (*choice.select, *choice.ignore):
            if name not in known:
                from torchtriage.catalog.load import unknown

                raise unknown(name, known, f"{file}: [tool.torchtriage]")
    return settings
