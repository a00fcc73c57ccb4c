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
from peers.peer import Peer
from peers.traceml import TraceML
from peers.traincheck import TrainCheck

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
PEERS: tuple[type[Peer], ...] = (TraceML, TorchAudit, TrainCheck)


@dataclass(frozen=True)
class Row:
    """What a tool made of a job: found what was planted, cried above info; and its time, over that of the job alone."""

    job: Job
    is_found: bool
    is_false: bool
    ratio: float


def install(folder: Path) -> None:
    """Makes FOLDER/PACKAGE for every peer, with the torch that CI tests."""
    for peer in PEERS:
        home = folder / peer.package
        subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip = (home / "bin/pip", "install", "-q", "-c", CONSTRAINTS)
        subprocess.run([*pip, "torch==2.13.0", "numpy", peer.package], check=True)


def compare(ours: Sequence[Row], folder: Path) -> Iterator[str]:
    """Each peer of FOLDER beside torchtriage over the same jobs; times are ratios to the job alone."""
    for kind in PEERS:
        tools = folder / kind.package / "bin"
        yield f"{kind.package}: {kind.how}"
        if (tools / "python").exists():
            with tempfile.TemporaryDirectory() as name:
                yield from _beside(kind(tools.absolute(), Path(name)), ours)
        else:
            yield f"  skipped: nothing is installed in {folder / kind.package} (--install-peers {folder})"


def _beside(peer: Peer, ours: Sequence[Row]) -> Iterator[str]:
    healthy = sorted((each for each in ours if not each.job.planted), key=lambda each: len(each.job.script))
    unseen = {job.id for job in peer.learned([each.job for each in healthy])}
    planted = thinned([each for each in ours if each.job.planted], peer.most)
    others = thinned([each for each in ours if each.job.id in unseen], peer.most)
    told = [judged(peer, each.job) for each in (*planted, *others)]
    for name, rows in ((peer.package, [row for row, _ in told]), ("torchtriage", [*planted, *others])):
        found, false = ([row for row in rows if bool(row.job.planted) is kind] for kind in (True, False))
        ratio = median(row.ratio for row in rows)
        yield f"  {name:<12} found {share(sum(row.is_found for row in found), len(found))}"
        yield f"  {'':<12} false alarms on healthy jobs {share(sum(row.is_false for row in false), len(false))}"
        yield f"  {'':<12} x {ratio:.1f} of the time of the job alone"
    troubles = Counter(trouble for _, trouble in told if trouble)
    yield from (f"  {number} jobs: {what}" for what, number in troubles.most_common())


def judged(peer: Peer, job: Job) -> tuple[Row, str]:
    """Whether every planted fault could be meant and a fault is said above info; and what went wrong, or ""."""
    said, alone = peer.said(job), plain(sys.executable, job.script)
    meant = frozenset(slug for word, _ in said.words for slug in peer.means.get(word, ()))
    loud = any(is_loud and peer.means.get(word) for word, is_loud in said.words)
    return Row(job, meant >= frozenset(job.planted), loud, said.seconds / alone), said.trouble


def thinned(rows: list[Row], most: int | None) -> list[Row]:
    """At most MOST of ROWS, evenly."""
    return rows if most is None or len(rows) <= most else [rows[number * len(rows) // most] for number in range(most)]
