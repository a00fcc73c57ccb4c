"""The folder of a training's checkpoints: a folder for each step, which is there whole or not at all.

A save is made under a name that no reader takes for a step, put on the disk, and then renamed: the rename is the moment
from which it counts. What goes is renamed first, so that no half of a step is ever seen under a step's name.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

from torchtriage.core.errors import TriageError
from torchtriage.toolkit.state import disk
from torchtriage.toolkit.state.lock import Lock

STEP = re.compile(r"step-(\d{9,18})(?:-(\d{1,9}))?")
"""Its number, and which save of it this is: a step that is saved again has a folder of its own again."""
UNFINISHED = re.compile(r"\.(?:writing|going)-(\d{9,18})-[0-9a-f]{16}")


class Folder:
    """Where the steps of one training lie; one process at a time writes there."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))  # noqa: PTH100 - a program may change its working folder
        self._lock = Lock(self.root / ".lock")

    def steps(self) -> list[tuple[int, Path]]:
        """What has a step's name, the newest first; whether it is whole is for others to say."""
        return self._named(STEP)

    def unfinished(self) -> list[tuple[int, Path]]:
        """What a process left that ended within a save, or while it took an old step away."""
        return self._named(UNFINISHED)

    def free(self, step: int) -> Path:
        """A name for STEP that no other save of it has."""
        taken = [_which(path) for number, path in self.steps() if number == step]
        return self.root / (f"step-{step:09d}-{max(taken) + 1}" if taken else f"step-{step:09d}")

    def begin(self, step: int, save: str) -> Path:
        """A new folder to write STEP in; raises TriageError where it is not ours to write, or OSError."""
        self._made()
        if self._lock.held():  # all that is unfinished is of processes that have ended
            for _, each in self.unfinished():
                disk.remove(each)
        place = self.root / f".writing-{step:09d}-{save}"
        disk.mkdir(place)
        return place

    def commit(self, place: Path, step: int) -> Path:
        """What lies in PLACE, all on the disk, is the step from here on, and stays it without power."""
        to = self.free(step)
        disk.rename(place, to)
        disk.settle(self.root)
        return to

    def give_up(self, place: Path) -> None:
        """A save has failed: its room is given back, as far as the disk lets us."""
        with contextlib.suppress(OSError):
            disk.remove(place)

    def set_aside(self, path: Path) -> Path:
        """A damaged step leaves its name to a new save; it is kept, for what can be rescued."""
        to = self.root / f"damaged-{path.name}-{secrets.token_hex(4)}"
        disk.rename(path, to)
        disk.settle(self.root)
        return to

    def take_away(self, step: int, path: Path) -> None:
        """An old step goes: first its name, then its files."""
        going = self.root / f".going-{step:09d}-{secrets.token_hex(8)}"
        disk.rename(path, going)
        disk.settle(self.root)
        disk.remove(going)

    def close(self) -> None:
        self._lock.release()

    def _named(self, form: re.Pattern[str]) -> list[tuple[int, Path]]:
        try:
            names = os.listdir(self.root)  # noqa: PTH208
        except FileNotFoundError:
            return []
        except OSError as error:
            raise TriageError(
                f"cannot be read: {error.strerror}", str(self.root), "Name a folder that can be read."
            ) from error
        found = [(int(match[1]), self.root / name) for name in names if (match := form.fullmatch(name))]
        return sorted(found, key=lambda each: (each[0], _which(each[1]), each[1].name), reverse=True)

    def _made(self) -> None:
        """The folder itself, and those above it, are there and on the disk; and this process has the lock."""
        missing = [each for each in (self.root, *self.root.parents) if not each.exists()]
        for each in reversed(missing):
            with contextlib.suppress(FileExistsError):
                disk.mkdir(each)
            disk.settle(each.parent)
        self._lock.take()


def _which(path: Path) -> int:
    """Which save of its step PATH is, from 1 on."""
    found = STEP.fullmatch(path.name)
    return int(found[2] or 1) if found is not None else 0
