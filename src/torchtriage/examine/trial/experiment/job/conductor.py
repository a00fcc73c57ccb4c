"""The process that experiments on this job: once it is gone, nothing of the job is to go on."""

from __future__ import annotations

import os
import shutil


class Conductor:
    """Known by its number and by when it began: the number may be another's once it is gone."""

    def __init__(self) -> None:
        self.number = int(os.environ["TORCHTRIAGE_CONDUCTOR"])
        self._began = _start_of(self.number)

    def is_gone(self) -> bool:
        """Also where it was gone before this process knew of it, as while torch was imported."""
        return not self._began or _start_of(self.number) != self._began

    def end_if_gone(self) -> None:
        """Whoever experiments may be killed: then this process ends, and nothing of its mirror stays.

        What is removed are the folders that were made for this leg, not TMPDIR, which a job may set for itself.
        """
        if self.is_gone():
            for folder in os.environ["TORCHTRIAGE_MIRROR"].split(os.pathsep):
                shutil.rmtree(folder, ignore_errors=True)
            os._exit(1)


def _start_of(process: int) -> str:
    """When PROCESS began, in the words of the system; empty where it has ended, though its parent may not know it."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - see the guard
            state, *rest = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]
