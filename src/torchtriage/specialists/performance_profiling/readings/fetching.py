"""What a record says about the making of a batch: which part and which line take the time, and who makes it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Loader, Stacks, Start, replace
from torchtriage.examine.run.measures import hotspots
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import own_seconds
from torchtriage.specialists.performance_profiling.probes.events import Fetch, Making
from torchtriage.specialists.performance_profiling.readings.lines import calling, dominating, sharing

ENOUGH_BATCHES = 8
ENOUGH_STEPS = 20
PART = 0.10  # of a step, from which a function that makes batches is named
WAITS = 0.30, 0.002, 0.00002  # share of a step, seconds, and seconds per sample, from which it matters who makes them


@detector("run/worker-count", timed=True)
def worker_count(record: RankRecord) -> Iterator[Sighting]:
    """The process that trains makes the batches, and workers would make them as fast as the step takes them."""
    rows = [row for row in record.steps if row.batches]
    loader, start = record.first(Loader) or Loader(), record.first(Start) or Start()
    cores = start.cpus or 0
    if len(rows) < ENOUGH_STEPS or loader.num_workers or cores < 2:
        return
    parts = batch_seconds(record, 0)
    whole, wait = median(map(own_seconds, rows)), median(row.data for row in rows)
    least = max(WAITS[0] * whole, WAITS[1] + WAITS[2] * (loader.batch_size or 0))
    if parts is None or min(wait, 2 * sum(parts)) < least or sum(parts) < wait / 2:
        return  # short, or spent on something else, as on a loader's start
    rest = max(whole - wait, 1e-6)
    wanted = min(math.ceil(sum(parts) / rest), cores)
    fact = (
        f"a batch takes {_ms(sum(parts))} to make and the rest of the step {_ms(rest)}: {wanted} workers on {cores} "
        "cores would do more than num_workers=0"
    )
    place = Place(path=loader.path, line=loader.line, rank=record.rank)
    yield Sighting(place, fact, float(wanted), "workers")


def places_and_parts(record: RankRecord, loader: Loader) -> tuple[list[Place], str]:
    """The line in which the making of samples spends most of its time, in the process that makes them, or those that
    share it; the lines that call it; and the function that makes a sample, or a batch of them. And the parts
    in words.
    """
    said = _parts(record, loader)
    looks = [_busy(event) for event in record.all(Making)] if loader.num_workers else record.all(Stacks)
    line = dominating(looks, "data")
    lines = [(line.path, line.number)] if line is not None and line.within else []
    lines = [*(lines or sharing(looks, "data")), *calling(looks, "data")]
    parts = batch_seconds(record, loader.num_workers)
    function = loader.path, loader.line
    if parts is not None and parts[1] > parts[0] and loader.collate:
        function = loader.collate[0], loader.collate[1]
    ordered = [*lines, function] if line is not None and line.within else [function, *lines]
    told = f"{said}; {line.said}" if line is not None and line.within else said
    told += _function(record, loader)
    known = [each for each in dict.fromkeys(ordered) if each[0]] or [(None, None)]
    return [Place(path=path, line=number, rank=record.rank) for path, number in known], told


def _busy(event: Making) -> Stacks:
    """What EVENT saw of a worker while it made batches, not while it waited to be asked for one."""
    lines, calls = [each for each in event.lines if each[4]], [each for each in event.calls if each[4]]
    return replace(event, lines=lines, calls=calls, parts={"data": sum(each[-1] for each in lines)})


def batch_seconds(record: RankRecord, workers: int) -> tuple[float, float] | None:
    """Seconds that samples and collate_fn take for a batch, in the process that makes it; None where few were seen.

    Each worker tells its own sums, the last of which holds the earlier ones.
    """
    last = {each.worker: each for each in record.all(Fetch) if each.workers == workers}.values()
    batches = sum(each.batches for each in last)
    if batches < ENOUGH_BATCHES:
        return None
    return sum(each.samples for each in last) / batches, sum(each.collate for each in last) / batches


def _parts(record: RankRecord, loader: Loader) -> str:
    workers = loader.num_workers
    parts = batch_seconds(record, workers)
    if parts is None:
        return ""
    by = f" in each of {workers} workers" if workers else ""
    return f"; making a batch takes {_ms(parts[0])} for its samples and {_ms(parts[1])} in collate_fn{by}"


def _function(record: RankRecord, loader: Loader) -> str:
    """The user's function that takes most of the making of a batch, and of the step where the loop makes it."""
    if loader.num_workers:
        looks = [look for event in record.all(Making) for look in hotspots.making(event)]
        if (top := hotspots.top(looks)) is None:
            return ""
        (path, function), line, share = top
        return f"; a worker spends {share:.0%} of making a batch in `{function}` ({path}:{line})"
    samples = hotspots.Samples(record)
    spots = hotspots.functions(samples, samples.of_loading(), PART) if samples.enough else []
    return f"; {spots[0].of.share:.0%} of the step is spent in {spots[0].named}" if spots else ""


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
