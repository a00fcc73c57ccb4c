"""What a repository's .gitignore files leave out."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class Ignored:
    """The .gitignore files that count below FOLDER: its own, those in it, and those above it in its repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._specs: dict[Path, GitIgnoreSpec | None] = {}

    def holds(self, path: Path, *, is_folder: bool = False) -> bool:
        """Whether PATH below the folder is left out: the .gitignore file nearest to it that speaks of it decides."""
        if self._root is None:
            return False
        path = Path(os.path.abspath(path))  # noqa: PTH100 - absolute() keeps the dots of ../B
        for home in path.parents:
            spec = self._spec(home)
            if spec is not None:
                name = path.relative_to(home).as_posix() + ("/" if is_folder else "")
                if (found := spec.check_file(name).include) is not None:
                    return found
            if home == self._root:
                break
        return False

    @cached_property
    def _root(self) -> Path | None:
        """The top of the repository; None where there is none."""
        here = Path(os.path.abspath(self.folder))  # noqa: PTH100 - see above
        return next((home for home in (here, *here.parents) if (home / ".git").exists()), None)

    def _spec(self, home: Path) -> GitIgnoreSpec | None:
        if home not in self._specs:
            self._specs[home] = _read(home / ".gitignore")
        return self._specs[home]


def _read(file: Path) -> GitIgnoreSpec | None:
    try:
        lines = file.read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError:
        return None
    from pathspec import GitIgnoreSpec

    understood = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except (ValueError, re.error):  # git passes over such a line, too
            continue
        understood.append(line)
    return GitIgnoreSpec.from_lines(understood)
