"""Where the rooms and their data files are: walked, never listed."""

# Plain strings: pathlib, with what it loads, would be a fifth of what a cold `ask` may cost.
# ruff: noqa: PTH118, PTH120, PTH110

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    Folder: TypeAlias = str | os.PathLike[str]

SOURCE = os.path.dirname(os.path.dirname(__file__))
ROOMS = os.path.join(SOURCE, "specialists")
TABLES = ("room.toml", "symptoms.toml", "verdicts.toml", "components.toml")


def ending(folder: Folder, end: str) -> list[str]:
    """The entries of FOLDER whose names end with END, by the alphabet; none where there is no such folder."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - see above
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [os.path.join(folder, name) for name in sorted(names) if name.endswith(end)]


def folders(rooms: Folder = ROOMS) -> tuple[str, ...]:
    """The rooms' folders: those that hold a symptoms table."""
    return tuple(each for each in ending(rooms, "") if os.path.exists(os.path.join(each, "symptoms.toml")))


def files(rooms: Folder = ROOMS) -> tuple[str, ...]:
    """The data files that the catalogue is made of."""
    found = [os.path.join(each, name) for each in folders(rooms) for name in TABLES]
    sheets = [page for each in folders(rooms) for page in ending(os.path.join(each, "faults"), ".md")]
    return (*filter(os.path.exists, found), *sheets)


def pages(rooms: Folder = ROOMS) -> dict[str, Path]:
    """Every fault page by its slug."""
    from pathlib import Path

    sheets = [Path(page) for each in ending(rooms, "") for page in ending(os.path.join(each, "faults"), ".md")]
    return {path.stem: path for path in sheets}
