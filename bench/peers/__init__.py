"""Other tools that diagnose runs, on the same jobs: each in an environment of its own, by the best way it documents.

A peer is given the benefit of the doubt. It has found a fault when anything that it says, of any severity, could stand
for it (`means`). A false alarm on a healthy job is only what could stand for some fault and is said above info: advice
on style or hardware and the load of the machine are not counted.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from corpus import Job, share
from processes import plain

from peers.audit import TorchAudit
from peers.peer import Peer, Said
from peers.traceml import TraceML
from peers.traincheck import TrainCheck

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
PEERS: tuple[type[Peer], ...] = (TraceML, TorchAudit, TrainCheck)


@dataclass(frozen=True)
class Ours:
    """What torchtriage made of a job: found what was planted, cried above info, and its seconds."""

    job: Job
    is_found: bool
    is_false: bool
    seconds: float


def install(folder: Path) -> None:
    """Makes FOLDER/PACKAGE for every peer, with the torch that CI tests."""
    for peer in PEERS:
        home = folder / peer.package
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip = (home / "bin/pip", "install", "-q", "-c", CONSTRAINTS)
        subprocess.run([*pip, "torch==2.13.0", "numpy", peer.package], check=True)


def compare(ours: Sequence[Ours], folder: Path) -> Iterator[str]:
    """Each peer of FOLDER beside torchtriage over the same jobs; times are ratios to the job alone."""
    alone: dict[str, float] = {}
    for kind in PEERS:
        tools = folder / kind.package / "bin"
        yield f"{kind.package}: {kind.how}"
        if (tools / "python").exists():
            with tempfile.TemporaryDirectory() as name:
                yield from _beside(kind(tools.absolute(), Path(name)), ours, alone)
        else:
            yield f"  skipped: nothing is installed in {folder / kind.package} (--install-peers {folder})"


def _beside(peer: Peer, ours: Sequence[Ours], alone: dict[str, float]) -> Iterator[str]:
    healthy = sorted((each for each in ours if not each.job.planted), key=lambda each: each.seconds)
    unseen = {job.id for job in peer.learned([each.job for each in healthy])}
    planted = thinned([each for each in ours if each.job.planted], peer.most)
    others = thinned([each for each in ours if each.job.id in unseen], peer.most)
    said = {each.job.id: peer.said(each.job) for each in (*planted, *others)}
    for each in (*planted, *others):
        if each.job.id not in alone:
            alone[each.job.id] = plain(sys.executable, each.job.script)
    theirs = [Ours(each.job, *judged(peer, each.job, said[each.job.id])) for each in (*planted, *others)]
    for name, rows in ((peer.package, theirs), ("torchtriage", [*planted, *others])):
        found, false = ([row for row in rows if bool(row.job.planted) is kind] for kind in (True, False))
        ratio = median(row.seconds / alone[row.job.id] for row in rows)
        yield f"  {name:<12} found {share(sum(row.is_found for row in found), len(found))}"
        yield f"  {'':<12} false alarms on healthy jobs {share(sum(row.is_false for row in false), len(false))}"
        yield f"  {'':<12} x {ratio:.1f} of the time of the job alone"
    trouble = Counter(each.trouble for each in said.values() if each.trouble)
    yield from (f"  {number} jobs: {what}" for what, number in trouble.most_common())


def judged(peer: Peer, job: Job, said: Said) -> tuple[bool, bool, float]:
    """Whether every planted fault could be meant, whether a fault is said above info, and the seconds."""
    meant = frozenset(slug for word, _ in said.words for slug in peer.means.get(word, ()))
    loud = any(is_loud and peer.means.get(word) for word, is_loud in said.words)
    return meant >= frozenset(job.planted), loud, said.seconds


def thinned(rows: list[Ours], most: int | None) -> list[Ours]:
    """At most MOST of ROWS, evenly."""
    return rows if most is None or len(rows) <= most else [rows[number * len(rows) // most] for number in range(most)]
