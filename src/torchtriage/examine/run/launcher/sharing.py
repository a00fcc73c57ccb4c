"""Several launchers of one job, as on several nodes: who each of them is, and the folder that they share."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchtriage.examine.run.job.ranks import membership
from torchtriage.examine.run.job.ranks.membership import LAUNCHERS
from torchtriage.examine.run.lines import Row, rows

JOB = ".job"  # in the folder: the job whose launchers may share it
NOTES = "processes.jsonl"  # of the launcher that made the folder; another one's are processes.<token>.jsonl
OTHERS = 30.0  # seconds that the launcher of rank 0 waits for the others to end
SOON, AGAIN = 0.02, 0.1  # seconds between two looks into a folder that others write to: no event tells of them over NFS
ABSENT = 5.0  # seconds that it waits for one of which nothing is to be seen in the folder
_STEP = ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_STEP_ID")
_IDS = (  # what names a job, and how often it was started anew
    ("slurm-", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"),
    ("", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    ("", "PET_RDZV_ID", ""),
    ("", "PMIX_NAMESPACE", ""),
    ("lsf-", "LSB_JOBID", ""),
    ("pbs-", "PBS_JOBID", ""),
)
_OPTIONS = {  # of torchrun, accelerate and deepspeed
    "node_rank": "index",
    "machine_rank": "index",
    "nnodes": "size",
    "num_machines": "size",
    "num_nodes": "size",
    "rdzv_id": "id",
    "rdzv_endpoint": "place",
    "master_addr": "place",
    "main_process_ip": "place",
    "master_port": "port",
    "main_process_port": "port",
}


def _token() -> str:
    return re.sub(r"[^\w-]", "-", f"{os.uname().nodename[:40]}-{os.getpid()}")


@dataclass(frozen=True)
class Member:
    """One launcher of a job.

    job: what tells the job from others, where it may have several launchers; None where it has one, or nothing tells.
    index: its number among them, None where nobody says. size: how many there are at least. name: for the run's folder.
    token: its own, in the first line of each record that its processes write.
    """

    job: str | None = None
    index: int | None = None
    size: int = 1
    name: str | None = None
    token: str = field(default_factory=_token)


def member(words: Sequence[str], outer: Mapping[str, str] = os.environ) -> Member:
    """The launcher that runs the command WORDS in the environment OUTER."""
    options = _options(words)
    ids = [*_ids(outer), *([options["id"]] if options.get("id", "none") != "none" else [])]
    place = ":".join(each for each in (options.get("place"), options.get("port")) if each)
    place = place or ":".join(outer.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT")).strip(":")
    least, most = _size(options, outer)
    step = outer.get(_STEP[2], "") if _number(outer.get(_STEP[0])) > 1 else ""
    told = [*ids, *([f"step {step}"] if step else []), *([place] if place else [])]
    name = re.sub(r"[^\w.-]", "-", ids[0])[:80].lstrip(".") if ids else None
    return Member(" ".join(told) if told and most > 1 else None, _index(options, outer), least, name or None)


def among() -> Member:
    """This very process, as one of those that train together: each has a launcher's part."""
    size = membership.world_size()
    who = member((), {**os.environ, "PET_NNODES": str(size)})
    name = who.name or (re.sub(r"[^\w.-]", "-", who.job) if who.job else None)
    return replace(who, index=membership.rank(), size=size, name=name) if size > 1 else replace(who, job=None)


def joins(folder: Path, who: Member, patience: float = 2.0) -> bool:
    """Whether FOLDER is that of another launcher of the same job, which has not had one like us.

    One that is just being made is waited for, PATIENCE seconds at most.
    """
    ends = time.monotonic() + patience
    while who.job is not None:
        told = _text(folder / JOB)
        if told.endswith("\n"):
            notes = list(launchers(folder))
            others = [each for each in notes if each["kind"] == "launcher"]
            if who.index is None:
                return told[:-1] == who.job and not any(each["kind"] == "ended" for each in notes)
            return told[:-1] == who.job and all(each.get("index") != who.index for each in others)
        if any(each.name not in {JOB, ".gitignore"} for each in folder.iterdir()) or time.monotonic() > ends:
            break
        time.sleep(SOON)
    return False


def launchers(folder: Path) -> Iterator[Row]:
    """What the launchers of a run say of themselves: that they are there, and how their job ended."""
    for path in sorted(folder.glob("processes*.jsonl")):
        yield from (each for each in _events(path) if each.get("kind") in {"launcher", "ended"})


def note(path: Path, line: Row) -> None:
    """Appends LINE to a list of processes; raises OSError where there is no room."""
    with path.open("a") as file:
        file.write(f"{json.dumps(line)}\n")


def leads(folder: Path, who: Member) -> bool:
    """Whether it is our part to judge: rank 0 was ours, or, where it left no record, we are the first launcher."""
    if who.job is None:
        return True
    starts = [start for path in folder.glob("rank0*.jsonl") if (start := next(_events(path), None))]
    told = max(starts, key=lambda start: start.get("time") or 0, default=None)
    if told is not None:
        return bool(told.get("launcher") == who.token)
    made = next((each for each in _events(folder / NOTES) if each.get("kind") == "launcher"), {})
    return who.index == 0 if who.index is not None else made.get("launcher") == who.token


def await_others(folder: Path, who: Member) -> None:
    """Returns when all launchers of the job have ended, or after OTHERS seconds; ABSENT for those that never came."""
    began = time.monotonic()
    while who.job is not None:
        notes, passed = list(launchers(folder)), time.monotonic() - began
        there = {each["launcher"] for each in notes if each["kind"] == "launcher"}
        ended = {each.get("launcher") for each in notes if each["kind"] == "ended"}
        waiting = bool(there - ended - {who.token})
        if passed > (OTHERS if waiting else ABSENT) or (not waiting and len(there) >= who.size):
            return
        time.sleep(AGAIN)


def _ids(outer: Mapping[str, str]) -> Iterator[str]:
    for prefix, name, restarts in _IDS:
        if outer.get(name, "none") not in {"", "none"}:
            again = _number(outer.get(restarts))
            yield f"{prefix}{outer[name]}{f'-r{again}' if again > 0 else ''}"


def _index(options: Mapping[str, str], outer: Mapping[str, str]) -> int | None:
    """Slurm numbers the tasks of a step: where each node has a step of its own, all of them are task 0."""
    several = _number(outer.get(_STEP[0])) > 1
    told = [options.get("index"), *(outer.get(rank) for rank, *_ in LAUNCHERS if rank != _STEP[1])]
    told += [outer.get(name) for name in ("PET_NODE_RANK", "NODE_RANK", "GROUP_RANK")]
    told += [outer.get(name) for name in (_STEP[1], "SLURM_NODEID") if several or _number(outer.get(name)) > 0]
    return next((int(each) for each in told if each is not None and _number(each) >= 0), None)


def _size(options: Mapping[str, str], outer: Mapping[str, str]) -> tuple[int, int]:
    """How many launchers the job has, at least and at most."""
    given = options.get("size") or outer.get("PET_NNODES") or "1"
    least, _, most = given.partition(":")
    others = [outer.get(size) for rank, size, _ in LAUNCHERS if rank in outer]
    known = max((_number(each) for each in others), default=1)
    return max(_number(least), known, 1), max(_number(most or least), known, 1)


def _options(words: Sequence[str]) -> dict[str, str]:
    """What the words before the script say of nodes and rendezvous."""
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        if word.endswith(".py"):
            break
        name, _, value = word.lstrip("-").partition("=")
        meant = _OPTIONS.get(name.replace("-", "_")) if word.startswith("--") else None
        following = words[index + 1] if index + 1 < len(words) else ""
        if meant is not None and (value or following):
            found.setdefault(meant, value or following)
    return found


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() else -1


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _events(path: Path) -> Iterator[Row]:
    """The lines of PATH that are JSON objects, one by one: a record may be long."""
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        yield from rows(file)
