"""What a record says about the making of a batch: which part and which line take the time, and who makes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.measure import own_seconds
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.performance_profiling.readings.lines import dominating

ENOUGH_BATCHES = 8
ENOUGH_STEPS = 20
WAITS = 0.30, 0.002, 0.00002  # share of a step, seconds, and seconds per sample, from which it matters who makes them


@detector("run/worker-count")
def worker_count(record: RankRecord) -> Iterator[Sighting]:
    """The process that trains makes the batches, and workers would make them as fast as the step takes them."""
    rows = [row for row in record.steps if row.get("batches")]
    loader = next(iter(record.all("loader")), {})
    cores = int(next(iter(record.all("start")), {}).get("cpus") or 0)
    if len(rows) < ENOUGH_STEPS or loader.get("num_workers") or cores < 2:
        return
    parts = batch_seconds(record, 0)
    whole, wait = median(map(own_seconds, rows)), median(row["data"] for row in rows)
    least = max(WAITS[0] * whole, WAITS[1] + WAITS[2] * (loader.get("batch_size") or 0))
    if parts is None or min(wait, 2 * sum(parts)) < least or sum(parts) < wait / 2:
        return  # short, or spent on something else, as on a loader's start
    rest = max(whole - wait, 1e-6)
    wanted = min(math.ceil(sum(parts) / rest), cores)
    fact = (
        f"a batch takes {_ms(sum(parts))} to make and the rest of the step {_ms(rest)}: {wanted} workers on {cores} "
        "cores would do more than num_workers=0"
    )
    place = Place(path=loader.get("path"), line=loader.get("line"), rank=record.rank)
    yield Sighting(place, fact, float(wanted), "workers")


def place_and_parts(record: RankRecord, loader: dict[str, Any]) -> tuple[Place, str]:
    """The line in which the making of samples spends most of its time, where the process that trains makes them; else
    the function that makes one. And the parts in words.
    """
    said = _parts(record, loader)
    line = dominating(record.all("stacks"), "data")
    if line is not None and line.within and not loader.get("num_workers"):
        return Place(path=line.path, line=line.number, rank=record.rank), f"{said}; {line.said}"
    return Place(path=loader.get("path"), line=loader.get("line"), rank=record.rank), said


def batch_seconds(record: RankRecord, workers: int) -> tuple[float, float] | None:
    """Seconds that samples and collate_fn take for a batch, in the process that makes it; None where few were seen.

    Each worker tells its own sums, the last of which holds the earlier ones.
    """
    last = {each.get("worker"): each for each in record.all("fetch") if each["workers"] == workers}
    batches = sum(each["batches"] for each in last.values())
    if batches < ENOUGH_BATCHES:
        return None
    samples, collate = (sum(each[name] for each in last.values()) / batches for name in ("samples", "collate"))
    return samples, collate


def _parts(record: RankRecord, loader: dict[str, Any]) -> str:
    workers = loader.get("num_workers") or 0
    parts = batch_seconds(record, workers)
    if parts is None:
        return ""
    by = f" in each of {workers} workers" if workers else ""
    return f"; making a batch takes {_ms(parts[0])} for its samples and {_ms(parts[1])} in collate_fn{by}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
