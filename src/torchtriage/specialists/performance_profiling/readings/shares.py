"""Where the time of a step goes, read from the clocks of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Collectives, Loader, Meeting, Stacks, Step, Wrapper
from torchtriage.examine.run.measures.figures import cpu_got
from torchtriage.examine.run.ranks.meetings import told_apart
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.ratio import ratio
from torchtriage.specialists.performance_profiling.probes.events import Arrivals
from torchtriage.specialists.performance_profiling.readings import building, fetching, limits
from torchtriage.specialists.performance_profiling.readings.lines import dominating

ENOUGH_STEPS = 10
OWN_WORK = 0.002, 0.00006  # seconds per step and per sample that a loader itself needs: input-bound.md defends them
BUSY, UNEXPLAINED = 0.8, 1.5  # share of the CPU time it wants that a thread gets; of the time in which workers make one
VERY_BUSY = 0.67  # the same share, where it is not known how long workers take
PART = 0.3  # of the time in which workers make a batch, that the rest of the step must leave over: input-bound's bound
LONG = (
    3.0  # times the floor, which workers need for a batch that is no toy, however short the wait of a busy machine is
)
STARTS, LOST = 4, 1.0  # of a loader's workers, and seconds that all took: for less nobody waits
COMPUTE = ("forward", "backward", "optimizer")
PHASES = ("data", "transfer", "communication", *COMPUTE)


@detector("run/data-wait", timed=True)
def data_wait(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step that is spent waiting for the next batch."""
    steps = _steady(record)
    if not any(step.batches for step in steps):
        raise CannotSee(
            "no DataLoader delivered a batch: time that goes into making batches is counted as other",
            "Feed the loop from a torch.utils.data.DataLoader, or time the line that makes the batch.",
        )
    waits = [step.data for step in steps]
    wait = sum(waits) / len(waits)
    loader = record.first(Loader) or Loader()
    made = sum(fetching.batch_seconds(record, loader.num_workers) or ()) if loader.num_workers else 0
    least = OWN_WORK[0] + OWN_WORK[1] * (loader.batch_size or 0)
    if wait < least or max(wait, made / LONG) * _free(steps, loader) < least:
        yield from _starts(record, loader, wait + made)
        return
    if any(event.what == "loader" for event, _ in building.built(record)):
        return  # the wait is for workers that start, and has a page of its own
    _device_waits_too(record)
    _others_have_the_cpus(record, steps, loader, wait)
    share, spread = ratio(waits, _seconds(steps))
    places, parts = fetching.places_and_parts(record, loader)
    fact = (
        f"{share:.0%} of a step is waiting for the next batch ({wait * 1e3:.1f} ms of "
        f"{sum(_seconds(steps)) / len(steps) * 1e3:.1f} ms, {len(steps)} steps){_named(loader)}{parts}"
    )
    for number, place in enumerate(places):
        yield Sighting(place, "this makes the batches too" if number else fact, share, "of the step", spread)
    path, line = loader.built or ("", 0)
    if path:
        where = Place(path=path, line=line, rank=record.rank)
        yield Sighting(where, "the loader is built here", share, "of the step", spread)


def _starts(record: RankRecord, loader: Loader, usual: float) -> Iterator[Sighting]:
    """What the starts of workers take, at the beginning of each pass over the data, of all the time of the training.

    USUAL: seconds that a batch is waited for, and that it takes to make, which the first one of a pass has to be waited
    for as well. A step that holds a validation is left out: its loader is another.
    """
    rows = [row for row in record.watched_steps if row.seconds]
    most = 2 * median(row.batches for row in rows)
    begins = [row.epochs == 1 and row.batches <= most for row in rows]
    waits = [max(row.data - usual, 0.0) * begin for row, begin in zip(rows, begins, strict=True)]
    starts = sum(begins)
    if not loader.num_workers or loader.persistent_workers or starts < STARTS or sum(waits) < LOST:
        return
    if fetching.batch_seconds(record, loader.num_workers) is None:
        return  # the first batch may be what is waited for
    share, spread = ratio(waits, _seconds(rows))
    fact = (
        f"{share:.0%} of the time goes into starting {loader.num_workers} workers at the beginning of each pass over "
        f"the data ({sum(waits) / starts * 1e3:.0f} ms at each of {starts} starts){_named(loader)}"
    )
    path, line = loader.built or (loader.path, loader.line)
    yield Sighting(Place(path=path, line=line, rank=record.rank), fact, share, "of the time", spread)


@detector("run/compute-share", timed=True)
def compute_share(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step that is spent in forward, backward and the optimizer."""
    steps = _steady(record)
    if _on_device(record):  # forward and backward only queue work: their time on the host is not compute time
        yield limits.device_share(record)
        return
    if not any(step.forward for step in steps):
        raise CannotSee("no forward pass of a module was timed", "Call the model as model(x), not model.forward(x).")
    if (record.has(Wrapper) or record.has(Meeting)) and not any(each.rows for each in record.all(Collectives)):
        raise CannotSee(
            "waiting for other ranks within the backward pass was not told apart from computing",
            "Let the job come to its end or to step 64, where its collectives are read.",
        )
    steps = [step for step in told_apart(record) if step.seconds]
    busy = [sum(step.spent(part) for part in COMPUTE) for step in steps]
    share, spread = ratio(busy, _seconds(steps))
    yield Sighting(
        Place(rank=record.rank),
        f"forward, backward and optimizer take {share:.0%} of a step ({len(steps)} steps)",
        share,
        "of the step",
        spread,
    )


@detector("run/loop-share", timed=True)
def loop_share(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step that is spent in no phase, in code around the model, where samples tell its line."""
    looks = record.all(Stacks)
    rows = [row for row in record.steps if row.seconds]
    if not looks or len(rows) < ENOUGH_STEPS or _on_device(record) or not any(row.forward for row in rows):
        return
    wholes = _seconds(rows)
    known = [sum(row.spent(part) for part in PHASES) for row in rows]
    rest = [max(whole - told, 0.0) for whole, told in zip(wholes, known, strict=True)]
    share, spread = ratio(rest, wholes)
    line = dominating(looks, "other")
    place = Place(path=line.path, line=line.number, rank=record.rank) if line else Place(rank=record.rank)
    fact = f"{share:.0%} of a step is in no phase: not data, model or optimizer ({len(rows)} steps)"
    yield Sighting(place, f"{fact}; {line.said}" if line else fact, share, "of the step", spread)


def _steady(record: RankRecord) -> list[Step]:
    steps = [step for step in record.steps if step.seconds]
    if len(steps) < ENOUGH_STEPS:
        raise CannotSee(
            f"{len(steps)} steps after warm-up, {ENOUGH_STEPS} are needed",
            f"Let the job run for {ENOUGH_STEPS + 5} steps or more.",
        )
    return steps


def _free(steps: Sequence[Step], loader: Loader) -> float:
    """The share of a wait that would be left if nobody else used the CPUs, from 0 to 1.

    A process that makes its batches itself waits for a CPU in proportion; workers wait as the thread that trains does
    whenever it could run.
    """
    if loader.num_workers:
        return cpu_got(steps)
    return max(1.0 - sum(step.queued for step in steps) / sum(step.seconds for step in steps), 0.0)


def _others_have_the_cpus(record: RankRecord, steps: Sequence[Step], loader: Loader, wait: float) -> None:
    """Workers on a busy machine deliver late without being slow: a wait that their own making does not explain."""
    workers, free = loader.num_workers, _free(steps, loader)
    if not workers or free >= BUSY:
        return
    parts = fetching.batch_seconds(record, workers)
    every, rest = sum(parts or ()) / workers, sum(_seconds(steps)) / len(steps) - wait
    explained = free >= VERY_BUSY if parts is None else wait <= UNEXPLAINED * every and every - rest >= PART * every
    if not explained:
        made = f"in {sum(parts) * 1e3:.1f} ms" if parts is not None else "in a time that is not known"
        raise CannotSee(
            f"the loop waits {wait * 1e3:.1f} ms for a batch, which each of {workers} workers makes {made}; "
            f"and the thread that trains got a CPU for {free:.0%} of the time it wanted one",
            "Run the job on a machine that has nothing else to do.",
        )


def _seconds(steps: Sequence[Step]) -> list[float]:
    """The job's own time: what the probes took is no part of it."""
    return [max(step.seconds - step.probes, 1e-9) for step in steps]


def _on_device(record: RankRecord) -> bool:
    return any(step.allocated for step in record.steps)


def _device_waits_too(record: RankRecord) -> None:
    """Waiting hides behind a device that still has work queued; only a drained device makes it cost time."""
    if not _on_device(record):
        return
    arrivals = record.all(Arrivals)
    seen, drained = (arrivals[-1].seen, arrivals[-1].drained) if arrivals else (0, 0)
    if not seen or drained < seen / 2:
        raise CannotSee(
            f"the host waits for batches, but the device was out of work at {drained} of {seen} arrivals only",
            "Profile ten steps with torch.profiler: its trace shows the device's own timeline.",
        )


def _named(loader: Loader) -> str:
    if not loader.dataset:
        return ""
    settings = f"batch_size={loader.batch_size}, num_workers={loader.num_workers}, pin_memory={loader.pin_memory}"
    return f": DataLoader({loader.dataset}, {settings}), samples come from {loader.source}"
