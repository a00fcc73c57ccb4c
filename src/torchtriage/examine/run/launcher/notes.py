"""Which processes of a running job stand still, by the list of processes that they write to."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from torchtriage.examine.run.lines import Row, Tail

ASK = "look"  # the file by which the ranks are asked where they stand, see job/ranks/hangs.py
EVERY = 1.0  # seconds between two looks whether the job stands still
PATIENCE = 40.0  # seconds after which a job that was told to end is killed; torchrun gives its processes 30
ANSWERS = 2.0  # seconds that their answers are waited for
BETWEEN = 0.05  # seconds between two looks whether they are there


class Notes:
    """Follows the list of processes at PATH, in a run's folder.

    watching: processes that notice when they stand still. standing: those that do. answered: those that have been
    asked where they stand, and have written it down.
    """

    def __init__(self, path: Path) -> None:
        self.path, self._tail = path, Tail(path)
        self.watching: set[int] = set()
        self.standing: set[int] = set()
        self.answered: set[int] = set()

    @property
    def stands(self) -> bool:
        """Whether all processes that train and are alive stand still."""
        self.read()
        alive = {process for process in self.watching if _lives(process)}
        return bool(alive) and alive <= self.standing

    def ask(self) -> None:
        """Asks all ranks of a job of several where they stand, and waits a moment for their answers."""
        self.read()
        if len(self.watching) < 2:
            return
        self.answered.clear()
        try:
            self.path.with_name(ASK).touch()
        except OSError:
            return
        ends = time.monotonic() + ANSWERS
        while time.monotonic() < ends and not {each for each in self.watching if _lives(each)} <= self.answered:
            time.sleep(BETWEEN)
            self.read()

    def read(self) -> None:
        """Takes in what has been noted since the last time."""
        for note in self._tail.fresh():
            self._take(note)

    def _take(self, note: Row) -> None:
        try:
            kind, process = str(note["kind"]), int(note.get("pid") or 0)
        except (ValueError, TypeError, KeyError):
            return
        if kind in {"watches", "hang"}:
            self.watching.add(process)
        if kind == "hang":
            self.standing.add(process)
        elif kind in {"moved", "left"}:
            self.standing.discard(process)
            self.watching -= {process} if kind == "left" else set()
        elif kind == "looked":
            self.answered.add(process)


class Standing:
    """Looks whether a job stands still, tells STANDS so, and ends it then where that is wanted.

    every: seconds between two looks; None where nobody wants to know. ending: the job has been told to end.
    """

    def __init__(self, notes: Notes, after: float | None, end: bool, stands: Callable[[], None]) -> None:
        self.every = EVERY if after is not None else None
        self.notes, self.end, self.stands = notes, end, stands
        self.ending = False
        self._told, self._patience = False, PATIENCE

    def look(self, job: subprocess.Popen[bytes]) -> None:
        if self.every is None:
            return
        if self.ending:
            self._patience -= self.every
            if self._patience <= 0:
                job.kill()
            return
        told, self._told = self._told, self.notes.stands
        if self._told and not told:
            self.stands()
            if self.end:
                self.ending = True
                job.terminate()


def _lives(process: int) -> bool:
    """Whether there is such a process on this machine."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return process > 0
