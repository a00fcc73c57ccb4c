"""Starts a job unchanged, with the probes waiting in its environment, and tells how it ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.examine.run.launcher import sharing
from torchtriage.examine.run.launcher.host import killed_for_memory, oom_kills
from torchtriage.examine.run.launcher.live import Line
from torchtriage.examine.run.launcher.notes import Notes, Standing
from torchtriage.examine.run.launcher.sharing import Member
from torchtriage.examine.run.launcher.signals import passing_on
from torchtriage.examine.run.lines import Row

ATTACH = Path(__file__).resolve().parents[1] / "attach"
WAY_OUT = "Name a new folder with --out."


@dataclass(frozen=True)
class Launch:
    """What to run and where its record goes.

    steps: leave the job after so many steps; it runs on. aside: the job's stdout goes to stderr, since ours holds
    the case. focus: names of the rooms whose dear probes go on after the first steps, if not all. who: which of the
    job's launchers we are. hang_after: seconds without movement until it is written down where the ranks stand.
    end_hang: a job of which all ranks stand is ended. baseline: the case of the same job on one process.
    budget: the share of the job's time that the probes may take after the first steps, if not the usual one. card: the
    simulated card that the job runs on, as JSON, if it does.
    """

    command: tuple[str, ...]
    folder: Path
    steps: int | None = None
    aside: bool = False
    focus: tuple[str, ...] = ()
    who: Member = field(default_factory=Member)
    hang_after: float | None = None
    end_hang: bool = False
    baseline: Path | None = None
    budget: float | None = None
    card: str | None = None


@dataclass(frozen=True)
class Ended:
    """How the job ended. code: as a shell tells it, 128 + signal when a signal ended it.

    leads: it is our part to judge; of several launchers it is that of the one with rank 0.
    """

    code: int
    signal: int | None = None
    leads: bool = True


def launch(launch: Launch, probes: Sequence[Path], stands: Callable[[], None] = lambda: None) -> Ended:
    """Runs the job to its end; its output, input and signals pass through untouched.

    STANDS is called while the job runs, each time that all ranks have come to stand still, with `hang_after` only.

    Of several launchers the one with rank 0 then waits for the others, so that their records are there to be judged.

    Raises TriageError, before anything has started, for a command or script that does not exist and for a folder
    that cannot hold a record.
    """
    if on_windows():
        raise TriageError(
            "jobs are not run under probes on Windows",
            "torchtriage run",
            "Use Linux or WSL; ask, check, read and explain work here.",
        )
    command = resolved(launch.command)
    folder, notes = entered(launch.folder, launch.who)
    settings = environment(os.environ, folder, probes, launch.steps, launch.focus, launch.hang_after)
    if launch.budget is not None:
        settings["TORCHTRIAGE_BUDGET"] = repr(launch.budget)
    settings |= rehearsal_environment(launch.card)
    settings |= {"TORCHTRIAGE_LAUNCHER": launch.who.token, "TORCHTRIAGE_NOTES": notes}
    kills = oom_kills()
    try:
        job = subprocess.Popen(command, env=settings, stdout=2 if launch.aside else None)  # noqa: S603 - the user's own
    except OSError as error:
        raise TriageError(
            f"cannot be started: {error.strerror}", command[0], "Give a command that runs by itself.", NOTHING_EXAMINED
        ) from error
    standing = Standing(Notes(folder / notes), launch.hang_after, launch.end_hang, stands)
    with passing_on(job, standing.notes):
        ended = _awaited(job, Line(folder), standing)
    about: Row = {"pid": job.pid, **({"hang": True} if standing.ending else {})}
    if launch.command[0].endswith(".py") and command[0] != sys.executable:
        about |= {"python": command[0], "own": sys.executable}
    if ended.code:
        about["oom_counted"] = bool(kills)
        if (killed := killed_for_memory(kills)) is not None:
            about["oom"] = killed
    _note(folder / notes, ended, launch.who, about)
    leads = sharing.leads(folder, launch.who)
    if leads:
        sharing.await_others(folder, launch.who)
    return replace(ended, leads=leads)


def _note(path: Path, ended: Ended, who: Member, about: Row) -> None:
    """One line in the list of processes, where there is room: how the job ended is also told by our own exit code."""
    name = signal.Signals(ended.signal).name if ended.signal in set(signal.Signals) else ended.signal
    told = {"kind": "ended", "code": ended.code, "signal": f"{name} ({ended.code})" if name else None, **about}
    with suppress(OSError):
        sharing.note(path, {**told, "launcher": who.token} if who.job is not None else told)


def on_windows() -> bool:
    return os.name == "nt"


def resolved(command: Sequence[str]) -> list[str]:
    """COMMAND as it can be started: a script runs with the `python` on PATH, else with ours."""
    if not command:
        raise TriageError("there is no command", "torchtriage run", "Write: torchtriage run -- train.py")
    words = list(command)
    if words[0].endswith(".py"):
        words.insert(0, shutil.which("python") or sys.executable)
    if shutil.which(words[0]) is None:
        raise _absent(words[0], "command")
    of_python = Path(words[0]).name.startswith("python")
    if of_python and len(words) > 1 and words[1].endswith(".py") and not Path(words[1]).is_file():
        raise _absent(words[1], "script")
    return words


def _absent(name: str, what: str) -> TriageError:
    return TriageError(f"there is no such {what}", name, "Check the spelling and the working folder.", NOTHING_EXAMINED)


def prepared(folder: Path) -> Path:
    """FOLDER, made, empty but for a .gitignore that covers all of it, as an absolute path."""
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(folder)
        with (folder / ".gitignore").open("x") as file:  # of two runs at the same moment, one makes it
            file.write("*\n")
    except FileExistsError as error:
        if not folder.is_dir():
            raise TriageError("the record cannot be written there: it is a file", str(folder), WAY_OUT) from error
        raise TriageError("the folder is not empty", str(folder), WAY_OUT) from error
    except OSError as error:
        raise TriageError(f"the record cannot be written there: {error.strerror}", str(folder), WAY_OUT) from error
    return folder


def entered(folder: Path, who: Member) -> tuple[Path, str]:
    """FOLDER, made or joined, as an absolute path, and the name of our list of processes in it.

    Raises TriageError for one that is neither empty nor that of another launcher of the same job.
    """
    try:
        place, notes = prepared(folder), sharing.NOTES
    except TriageError:
        if not folder.is_dir() or not sharing.joins(folder, who):
            raise
        place, notes = folder.absolute(), f"processes.{who.token}.jsonl"
    if who.job is not None:
        told = {"kind": "launcher", "launcher": who.token, "index": who.index, "host": os.uname().nodename}
        with suppress(OSError):
            sharing.note(place / notes, told)
            if notes == sharing.NOTES:
                (place / sharing.JOB).write_text(f"{who.job}\n")
    return place, notes


def rehearsal_environment(card: str | None) -> dict[str, str]:
    """The environment of a job that runs on a simulated CARD, as JSON; a device that is there stays out of it."""
    return {"TORCHTRIAGE_ACCELERATOR": card, "CUDA_VISIBLE_DEVICES": ""} if card is not None else {}


def environment(
    outer: Mapping[str, str],
    folder: Path,
    probes: Sequence[Path],
    steps: int | None = None,
    focus: Sequence[str] = (),
    hang_after: float | None = None,
) -> dict[str, str]:
    """OUTER with the probes in it. PYTHONPATH gets no empty entry: one that was there meant the working folder."""
    before = outer.get("PYTHONPATH", "")
    entries = [entry or str(Path.cwd()) for entry in before.split(os.pathsep)] if before else []
    return {
        **{name: value for name, value in outer.items() if not name.startswith("TORCHTRIAGE_")},
        "PYTHONPATH": os.pathsep.join([str(ATTACH), *(entry for entry in entries if entry != str(ATTACH))]),
        "TORCHTRIAGE_FOLDER": str(folder),
        "TORCHTRIAGE_PROBES": os.pathsep.join(str(path.absolute()) for path in probes),
        **({"TORCHTRIAGE_STEPS": str(steps)} if steps is not None else {}),
        **({"TORCHTRIAGE_FOCUS": " ".join(focus)} if focus else {}),
        **({"TORCHTRIAGE_HANG": str(hang_after)} if hang_after is not None else {}),
    }


def _awaited(job: subprocess.Popen[bytes], line: Line, standing: Standing) -> Ended:
    while True:
        try:
            code = job.wait(timeout=standing.every or line.every)
        except subprocess.TimeoutExpired:
            if line.every:
                line.draw()
            standing.look(job)
            continue
        line.clear()
        return Ended(code) if code >= 0 else Ended(128 - code, -code)
