"""Executes one leg: the user's command in its mirror, under a guard and the probes of a trial."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.examine.run.launcher.launch import environment, on_windows, prepared, resolved
from torchtriage.examine.trial.leg.ending import MARK, Process, ended_with_us
from torchtriage.examine.trial.leg.mirror import OWN, Mirror, caches

GUARD = Path(__file__).resolve().parent / "job"
SHOWN = 12  # lines of what the job said last
_EVERY = 0.02  # seconds between two looks at a leg


@dataclass(frozen=True)
class Leg:
    """What is executed and how it is watched.

    name: what the leg is called in sentences and of its record, `record-<name>` in the mirror's place. command: as the
    user gave it; {leg} stands for the leg's folder. probes: folders of modules that the job loads, as a room's probes;
    settings: environment that these read. timeout: seconds. done: asked again and again; once it is true, the leg is
    ended as a preempted job is, by SIGKILL.
    """

    name: str
    command: tuple[str, ...]
    mirror: Mirror
    probes: tuple[Path, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    done: Callable[[], bool] = lambda: False

    @property
    def record(self) -> Path:
        return self.mirror.place / f"record-{self.name}"


@dataclass(frozen=True)
class Refused:
    """A file elsewhere that the leg was about to overwrite. how: "overwritten", "removed" or "moved away"."""

    path: str
    how: str
    line: str


@dataclass(frozen=True)
class Ended:
    """How a leg ended. code: as a shell tells it; stopped: `done` was true; late: its time was over.

    elsewhere: files outside of its folder that it made. said: its last lines, of stderr or else of stdout.
    """

    code: int
    stopped: bool = False
    late: bool = False
    refused: Refused | None = None
    elsewhere: tuple[str, ...] = ()
    said: tuple[str, ...] = ()


def execute(leg: Leg) -> Ended:
    """Runs LEG to its end; afterwards no process of it is left.

    What it says goes to `<name>.out` and `<name>.err` beside its record; it has no input.

    Raises TriageError where the command cannot be started.
    """
    if on_windows():
        raise TriageError("jobs are not run under probes on Windows", "a trial", "Use Linux or WSL.")
    command = leg.mirror.words(resolved(leg.command))
    mark = uuid4().hex
    streams = [leg.mirror.place / f"{leg.name}.{kind}" for kind in ("out", "err")]
    with streams[0].open("wb") as out, streams[1].open("wb") as err:
        try:
            job = subprocess.Popen(  # noqa: S603 - the user's own
                command, cwd=leg.mirror.work, env=settings(leg, mark), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise TriageError(
                f"cannot be started: {error.strerror}",
                command[0],
                "Give a command that runs by itself.",
                NOTHING_EXAMINED,
            ) from error
        return awaited(job, leg, mark)


def awaited(job: Process, leg: Leg, mark: str) -> Ended:
    """Waits for JOB, the process of LEG, to end or to be ended; nothing of it is left then."""
    with ended_with_us(job, mark):
        stopped, late = _watched(job, leg)
    code, place = job.wait(), leg.mirror.place
    said = _tail(place / f"{leg.name}.err") or _tail(place / f"{leg.name}.out")
    return Ended(code if code >= 0 else 128 - code, stopped, late, _refused(place), elsewhere(leg.mirror), said)


def settings(leg: Leg, mark: str) -> dict[str, str]:
    """The environment of LEG: the probes, the guard, and no path that leads back to the user's folder."""
    mirror = leg.mirror
    outer = {**os.environ, "PYTHONPATH": _here(mirror, os.environ.get("PYTHONPATH", ""))}
    if not outer["PYTHONPATH"]:
        del outer["PYTHONPATH"]
    record = prepared(leg.record)
    return {
        **environment(outer, record, leg.probes),
        "PWD": str(mirror.work),
        "TMPDIR": str(mirror.temporary),
        "TORCHTRIAGE_GUARD": str(GUARD),
        "TORCHTRIAGE_PLACE": str(mirror.place),
        "TORCHTRIAGE_WORK": str(mirror.work),
        "TORCHTRIAGE_FREE": os.pathsep.join(map(str, caches())),
        MARK: mark,
        **leg.settings,
    }


def _here(mirror: Mirror, entries: str) -> str:
    """An entry of PYTHONPATH that lies in the user's folder is that of the mirror; an empty one meant the folder."""
    if not entries:
        return ""
    found = (entry or str(mirror.source) for entry in entries.split(os.pathsep))
    return os.pathsep.join(mirror.words(("", *found))[1:])


def _watched(job: Process, leg: Leg) -> tuple[bool, bool]:
    began = time.monotonic()
    refused = leg.mirror.place / "refused.txt"
    while True:
        try:
            job.wait(timeout=_EVERY)
        except subprocess.TimeoutExpired:
            if leg.done():
                return True, False
            if refused.exists():
                return False, False
            if leg.timeout is not None and time.monotonic() - began > leg.timeout:
                return False, True
            continue
        return leg.done(), False


def elsewhere(mirror: Mirror) -> tuple[str, ...]:
    """The files outside of its folder that the legs of MIRROR have made."""
    return tuple(_lines(mirror.place / "elsewhere.txt"))


def _refused(place: Path) -> Refused | None:
    for line in _lines(place / "refused.txt"):
        how, path, where = (*line.split("\t"), "", "")[:3]
        return Refused(path, how, where.removeprefix(f"{place / 'work'}/"))
    return None


def refusal(refused: Refused, leg: Leg) -> TriageError:
    """What a user reads of a leg that was about to overwrite a file of theirs."""
    by = f" by {refused.line}" if refused.line else ""
    shown = " ".join(leg.command)
    return TriageError(
        f"the {leg.name} leg was ended before it: the file would have been {refused.how}{by}, and a trial leaves your "
        "files as they are",
        refused.path,
        f"Let the job write below its working folder, or name its output with {OWN}, the folder of each leg: "
        f"-- {shown} --out {OWN}/out",
        NOTHING_EXAMINED,
    )


def _lines(path: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _tail(path: Path) -> tuple[str, ...]:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - 8192))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return tuple([line for line in lines if line.strip()][-SHOWN:])


def say(text: str) -> None:
    """One line of progress."""
    sys.stderr.write(f"torchtriage: {text}\n")
    sys.stderr.flush()
