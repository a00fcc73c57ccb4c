"""What the follower inside a leg has written, read back: its units, its files, its states."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchtriage.examine.trial.resume.state import State
from torchtriage.examine.trial.resume.trial import Unit

Event = dict[str, Any]


class Record:
    """One rank's record of a leg."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.folder, self.rank = folder, rank
        self.events = list(_events(folder / f"resume{rank}.jsonl"))
        self.units = tuple(
            Unit(event["unit"], event["turn"], event) for event in self.events if event["event"] == "unit"
        )
        self.ended = any(event["event"] == "end" for event in self.events)

    @property
    def turns(self) -> int:
        return max((event["turn"] for event in self.events), default=0)

    def state(self, unit: int | str) -> State | None:
        path = self.folder / f"state{self.rank}-{unit}"
        return State(path) if path.with_suffix(".json").is_file() else None

    def states(self) -> list[int]:
        """The units of which there are whole states."""
        names = (path.stem.rpartition("-")[2] for path in self.folder.glob(f"state{self.rank}-*.json"))
        return sorted(int(name) for name in names if name.isdecimal())

    def numbers(self, unit: int) -> dict[str, Any]:
        """The plain values of a unit, which are told only as they change."""
        found: dict[str, Any] = {}
        for each in self.units[: unit + 1]:
            found |= each.told.get("numbers", {})
        return found

    def written(self) -> dict[str, tuple[int, int]]:
        """Each file that stands at the end, no logs: the unit that was to come when it was written, and the turn."""
        found: dict[str, tuple[int, int]] = {}
        for event in self.events:
            if event["event"] != "file" or event["log"]:
                continue
            path, to = event["path"], event["to"]
            if event["how"] == "write":
                found[path] = (event["unit"], event["turn"])
            elif event["how"] == "remove":
                found.pop(path, None)
            elif event["how"] == "move":
                found |= {to + name.removeprefix(path): found[name] for name in list(found) if _below(name, path)}
                for name in [name for name in found if _below(name, path)]:
                    del found[name]
        return found

    def read(self) -> list[str]:
        """The files that were opened for reading before the first unit had its backward."""
        return [event["path"] for event in self.events if event["event"] == "file" and event["how"] == "read"]

    def marks(self, event: str) -> dict[str, tuple[str, ...]]:
        """By generator its marks as EVENTs of one kind happened."""
        found: dict[str, tuple[str, ...]] = {}
        for each in self.events:
            for name, mark in each.get("rng", {}).items() if each["event"] == event else ():
                found[name] = (*found.get(name, ()), mark)
        return found


def ranks(folder: Path) -> list[int]:
    """The ranks that have left a record in FOLDER."""
    names = (path.stem.removeprefix("resume") for path in folder.glob("resume*.jsonl"))
    return sorted(int(name) for name in names if name.isdecimal())


def _below(name: str, folder: str) -> bool:
    return name == folder or name.startswith(f"{folder}/")


def _events(path: Path) -> Iterator[Event]:
    """The whole lines of a record; the last may have been cut off."""
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return
