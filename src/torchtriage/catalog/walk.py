"""Where the rooms and their data files are: walked, never listed."""

from __future__ import annotations

from pathlib import Path

ROOMS = Path(__file__).parent.parent / "specialists"


def folders(rooms: Path = ROOMS) -> tuple[Path, ...]:
    """The rooms' folders: those that hold a symptoms table."""
    return tuple(sorted(path.parent for path in rooms.glob("*/symptoms.toml")))


def files(rooms: Path = ROOMS) -> tuple[Path, ...]:
    """The data files that the catalogue is made of."""
    patterns = ("symptoms.toml", "verdicts.toml", "faults/*.md")
    return tuple(sorted(path for folder in folders(rooms) for each in patterns for path in folder.glob(each)))


def pages(rooms: Path = ROOMS) -> dict[str, Path]:
    """Every fault page by its slug."""
    return {path.stem: path for path in sorted(rooms.glob("*/faults/*.md"))}
