"""The jobs of bench/accelerated.jsonl, and how one is run: plainly for its truth or watched, with any costs."""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import exp
from pathlib import Path
from statistics import fmean
from typing import Any

from processes import NAME, ended

from simulated.child import costs_of
from simulated.truth import Truth, load
from torchtriage.simulation import Ledger

FILE = Path(__file__).parent.parent / "accelerated.jsonl"
CHILD = Path(__file__).parent / "child.py"
MIB = 2**20
PAGES_SINCE = {
    "non-blocking copies that race": frozenset({"non-blocking-race"}),
    "numbers read late or too early": frozenset({"non-blocking-race"}),
    "streams without an order": frozenset({"stream-not-waited"}),
}
"""By class, the pages that were written after the jobs, for those that declare that there is none."""

LIMIT = 240.0
"""Seconds of a run; none takes a quarter of it on one quiet core."""
SPREAD, NARROW = 0.25, 0.15
"""Standard deviations of the logarithm by which costs of kernels, and those of launches and transfers, are drawn."""


@dataclass(frozen=True)
class Job:
    """A script, the costs of its device, and what is true of it.

    memory: bytes of each device. turns: optimizer steps that make a step of the training. kind: its class of part 3 of
    the issue, or `healthy`. slugs, verdicts: any one of them is right; also: what may be said beside. lines: any is
    right. page: whether the catalog has one for it. checks: what the ledger must show (checks.py).
    """

    id: str
    script: str
    kind: str
    costs: Mapping[str, Any]
    memory: int = 16 * 1024 * MIB
    devices: int = 1
    ranks: int = 0
    turns: int = 1
    slugs: frozenset[str] = frozenset()
    verdicts: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    lines: tuple[int, ...] = ()
    rank: int | None = None
    page: bool = True
    checks: tuple[str, ...] = ()
    words: str = ""

    @property
    def is_healthy(self) -> bool:
        return self.kind == "healthy"

    @property
    def expected(self) -> frozenset[str]:
        return self.slugs | self.verdicts

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Job:
        truth: dict[str, Any] = {**row["truth"]}
        for name in ("slugs", "verdicts", "also"):
            truth[name] = frozenset(truth.get(name, ()))
        for name in ("lines", "checks"):
            truth[name] = tuple(truth.get(name, ()))
        if not truth.get("page", True) and (slugs := PAGES_SINCE.get(row["class"])):
            truth |= {"page": True, "slugs": slugs}
        rest = {name: value for name, value in row.items() if name not in {"truth", "class"}}
        return cls(kind=row["class"], **rest, **truth)


def jobs(path: Path = FILE) -> list[Job]:
    return [Job.read(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@dataclass(frozen=True)
class Ran:
    """A run of a job: its exit code (None when it took too long), and where its ledgers and its record are."""

    job: Job
    code: int | None
    folder: Path
    costs: Mapping[str, Any]
    bandwidth: frozenset[str] = field(default=frozenset())

    @property
    def record(self) -> Path:
        return self.folder / "record"

    @property
    def output(self) -> str:
        return (self.folder / "output.txt").read_text(encoding="utf-8", errors="replace")

    def truths(self) -> list[Truth]:
        """By rank; empty where the process left no ledger."""
        return load(self.folder, costs_of(dict(self.costs)), self.bandwidth)


@contextmanager
def run(
    job: Job,
    costs: Mapping[str, Any] | None = None,
    *,
    watched: bool = False,
    autocast: bool = True,
    bandwidth: frozenset[str] = frozenset(),
) -> Iterator[Ran]:
    """JOB's run in a folder of its own, which is gone afterwards; costs: others than its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / NAME).write_text(job.script, encoding="utf-8")
        if watched:
            (folder / "record").mkdir()
        request: dict[str, Any] = {
            "script": str(folder / NAME),
            "out": str(folder),
            "costs": dict(costs if costs is not None else job.costs),
            "memory": job.memory,
            "devices": job.devices,
            "turns": job.turns,
            "autocast": autocast,
            "watch": str(folder / "record") if watched else None,
        }
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        ranks = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(job.ranks)) if job.ranks else ()
        code, _ = ended((sys.executable, *ranks, CHILD, folder / "request.json"), folder, LIMIT)
        yield Ran(job, code, folder, request["costs"], bandwidth)


def drawn(job: Job, truths: Iterable[Truth], seed: int) -> dict[str, Any]:
    """Other costs for JOB, drawn around those that its LEDGERS show: an implementation of the device of its own.

    Each kernel takes a time by its name, whatever its size: the mean of what it took, times a factor of its own.
    """
    source = random.Random(f"{seed} {job.id}")  # noqa: S311 - repeatable, and no secret
    found: dict[str, list[int]] = defaultdict(list)
    costs = None
    for each in truths:
        costs = each.costs
        _collect(each.ledger, found)
    if costs is None:
        return dict(job.costs)

    def factor(deviation: float) -> float:
        return exp(min(max(source.gauss(0.0, deviation), -2 * deviation), 2 * deviation))

    rates = {name: getattr(costs, name) for name in ("pinned", "pageable", "peer", "collective")}
    return {
        "launch": round(costs.launch * factor(NARROW)),
        "kernel": round(costs.kernel * factor(SPREAD)),
        "kernels": {name: round(fmean(found[name]) * factor(SPREAD)) for name in sorted(found)},
        **{
            name: [round(rate.latency * factor(NARROW)), rate.bytes_per_second * factor(NARROW)]
            for name, rate in rates.items()
        },
    }


def _collect(ledger: Ledger, found: dict[str, list[int]]) -> None:
    for each in ledger.kernels:
        found[each.name].append(each.end - each.start)
