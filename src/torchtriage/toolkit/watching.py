"""The probes without the launcher, around a block of the user's own code: for notebooks and test suites."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING

from torchtriage.core.errors import TriageError

if TYPE_CHECKING:
    from torchtriage.core.case import Case
    from torchtriage.examine.run.job import Job
    from torchtriage.examine.run.launcher.sharing import Member

LAUNCHED = "_torchtriage_job"  # the module that `torchtriage run` has put into a job
_one_at_a_time = Lock()  # two would wrap each other, and count each other's work


def watch(
    out: str | Path | None = None, symptom: str | None = None, *, steps: int | None = None, quiet: bool = False
) -> Watch:
    """Watches the training inside the block, and judges it at the end of the block.

        with torchtriage.toolkit.watch() as run:
            train()
        run.case.findings

    out: a new or empty folder for the record, case.json and report.html, else torchtriage-runs/<time>.
    symptom: what you see, in your words: opens the plan.
    steps: watch so many steps and leave; the block runs on.
    quiet: print no report to stderr.

    Raises TriageError before the block begins: within another watch, and for a folder that cannot hold a record. An
    error that ends the block passes through as it is; what was recorded until then is judged. In a job that
    `torchtriage run` watches already the block runs as it is, and its case says so.
    """
    return Watch(None if out is None else Path(out), symptom, steps, quiet)


class Watch:
    """One block that is watched; see `watch`. folder: where its record is, once the block has begun."""

    def __init__(self, out: Path | None, symptom: str | None, steps: int | None, quiet: bool) -> None:
        self.folder = out
        self.symptom, self.steps, self.quiet = symptom, steps, quiet
        self._job: Job | None = None
        self._who: Member
        self._case: Case | None = None
        self._process = 0
        self._notes = ""

    @property
    def case(self) -> Case:
        """What the block showed; raises TriageError until it has ended."""
        if self._case is None:
            raise TriageError("the block has not ended", "watch", "Read the case after the with block.")
        return self._case

    def __enter__(self) -> Watch:
        self._process = os.getpid()
        if LAUNCHED not in sys.modules:
            if not _one_at_a_time.acquire(blocking=False):
                raise TriageError("a block is watched already", "watch", "Leave that block first.")
            try:
                self._begin()
            except BaseException:
                _one_at_a_time.release()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from torchtriage.core.case import Case
        from torchtriage.triage import begun, judged, unwatched

        job, self._job = self._job, None
        asked = begun(self.symptom) if self.symptom else Case()
        if job is None:
            self._case = unwatched(asked, "the job is watched by `torchtriage run` already")
            return
        try:
            _leave(job, error)
        finally:
            _one_at_a_time.release()
        if os.getpid() != self._process:
            self._case = unwatched(asked, "this process was forked within the block: its parent judges")
        elif self.folder is not None and self._together(self.folder, error):
            self._case = judged(self.folder, asked)
            self._say(self.folder)
        else:
            self._case = unwatched(asked, "the process of rank 0 judges all ranks")

    def _begin(self) -> None:
        from torchtriage.examine.run.job import begin
        from torchtriage.examine.run.launcher.launch import entered
        from torchtriage.examine.run.launcher.sharing import among, joins, note
        from torchtriage.report.keep import folder
        from torchtriage.triage import probes

        if find_spec("torch") is None:
            raise TriageError("there is no torch here", "watch", "Install torch, or use the Python that has it.")
        who = self._who = among()
        with folder(self.folder, name=who.name, ours=lambda place: joins(place, who)) as place:
            self.folder, self._notes = entered(place, who)
        job = self._job = begin(str(self.folder), [str(path) for path in probes()], self.steps, midway=True)
        notes = [{"kind": "torch"}, *({"kind": "probes-failed", "why": f"{p}: {why}"} for p, why in job.lost.items())]
        for each in notes:
            note(self.folder / self._notes, {**each, "pid": self._process})

    def _together(self, folder: Path, error: BaseException | None) -> bool:
        """Whether it is our part to judge: as rank 0, once the other ranks have left their blocks, or alone."""
        from torchtriage.examine.run.launcher.sharing import await_others, note

        if self._who.job is None:
            return True
        with suppress(OSError):
            told = {"kind": "ended", "code": int(error is not None), "signal": None, "launcher": self._who.token}
            note(folder / self._notes, told)
        if self._who.index == 0:
            await_others(folder, self._who)
        return self._who.index == 0

    def _say(self, folder: Path) -> None:
        """The case and the report into FOLDER, and the report to stderr, if there is one that takes it."""
        from torchtriage.report.formats import render
        from torchtriage.report.keep import keep

        kept = keep(self.case, folder)
        if not self.quiet and sys.stderr is not None:
            with suppress(OSError, ValueError):  # full, gone or closed: the case is there all the same
                sys.stderr.write(f"{render(self.case, 'console').rstrip()}\n{kept}\n")


def _leave(job: Job, error: BaseException | None) -> None:
    from torchtriage.examine.run.job import end

    try:
        end(job, error)
    finally:
        job.close()
