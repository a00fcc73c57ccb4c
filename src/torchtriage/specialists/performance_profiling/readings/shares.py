"""Where the time of a step goes, read from the clocks of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.measure import cpu_got
from torchtriage.examine.run.ranks.meetings import told_apart
from torchtriage.examine.run.ratio import ratio
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.performance_profiling.readings import building, fetching
from torchtriage.specialists.performance_profiling.readings.lines import dominating

ENOUGH_STEPS = 10
OWN_WORK = 0.002, 0.00006  # seconds per step and per sample that a loader itself needs: input-bound.md defends them
BUSY, UNEXPLAINED = 0.8, 1.5  # share of the CPU time it wants that a thread gets; of the time in which workers make one
VERY_BUSY = 0.67  # the same share, where it is not known how long workers take
PART = 0.3  # of the time in which workers make a batch, that the rest of the step must leave over: input-bound's bound
LONG = (
    3.0  # times the floor, which workers need for a batch that is no toy, however short the wait of a busy machine is
)
COMPUTE = ("forward", "backward", "optimizer")
PHASES = ("data", "transfer", "communication", *COMPUTE)


@detector("run/data-wait")
def data_wait(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step that is spent waiting for the next batch."""
    steps = _steady(record)
    if not any(step["batches"] for step in steps):
        raise CannotSee(
            "no DataLoader delivered a batch: time that goes into making batches is counted as other",
            "Feed the loop from a torch.utils.data.DataLoader, or time the line that makes the batch.",
        )
    waits = [step["data"] for step in steps]
    wait = sum(waits) / len(waits)
    loader = next(iter(record.all("loader")), {})
    made = sum(fetching.batch_seconds(record, loader.get("num_workers") or 0) or ()) if loader.get("num_workers") else 0
    least = OWN_WORK[0] + OWN_WORK[1] * (loader.get("batch_size") or 0)
    if wait < least or max(wait, made / LONG) * _free(steps, loader) < least:
        return
    if any(event["what"] == "loader" for event, _ in building.built(record)):
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
    path, line = loader.get("built") or ("", 0)
    if path:
        where = Place(path=path, line=line, rank=record.rank)
        yield Sighting(where, "the loader is built here", share, "of the step", spread)


@detector("run/compute-share")
def compute_share(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step that is spent in forward, backward and the optimizer."""
    steps = _steady(record)
    if _on_device(record):
        raise CannotSee(
            "forward and backward only queue work for the device: their time on the host is not compute time",
            "Profile ten steps with torch.profiler: its trace shows the device's own timeline.",
        )
    if not any(step["forward"] for step in steps):
        raise CannotSee("no forward pass of a module was timed", "Call the model as model(x), not model.forward(x).")
    if (record.all("wrapper") or record.all("meeting")) and not any(e["rows"] for e in record.all("collectives")):
        raise CannotSee(
            "waiting for other ranks within the backward pass was not told apart from computing",
            "Let the job come to its end or to step 64, where its collectives are read.",
        )
    steps = [step for step in told_apart(record) if step["seconds"]]
    busy = [sum(step[part] or 0.0 for part in COMPUTE) for step in steps]
    share, spread = ratio(busy, _seconds(steps))
    yield Sighting(
        Place(rank=record.rank),
        f"forward, backward and optimizer take {share:.0%} of a step ({len(steps)} steps)",
        share,
        "of the step",
        spread,
    )


@detector("run/loop-share")
def loop_share(record: RankRecord) -> Iterator[Sighting]:
    """The share of a step that is spent in no phase, in code around the model, where samples tell its line."""
    looks = record.all("stacks")
    rows = [row for row in record.steps if row["seconds"]]
    if not looks or len(rows) < ENOUGH_STEPS or _on_device(record) or not any(row["forward"] for row in rows):
        return
    wholes = _seconds(rows)
    rest = [
        max(whole - sum(row.get(part) or 0.0 for part in PHASES), 0.0) for row, whole in zip(rows, wholes, strict=True)
    ]
    share, spread = ratio(rest, wholes)
    line = dominating(looks, "other")
    place = Place(path=line.path, line=line.number, rank=record.rank) if line else Place(rank=record.rank)
    fact = f"{share:.0%} of a step is in no phase: not data, model or optimizer ({len(rows)} steps)"
    yield Sighting(place, f"{fact}; {line.said}" if line else fact, share, "of the step", spread)


def _steady(record: RankRecord) -> list[dict[str, Any]]:
    steps = [step for step in record.steps if step["seconds"]]
    if len(steps) < ENOUGH_STEPS:
        raise CannotSee(
            f"{len(steps)} steps after warm-up, {ENOUGH_STEPS} are needed",
            f"Let the job run for {ENOUGH_STEPS + 5} steps or more.",
        )
    return steps


def _free(steps: Sequence[dict[str, Any]], loader: dict[str, Any]) -> float:
    """The share of a wait that would be left if nobody else used the CPUs, from 0 to 1.

    A process that makes its batches itself waits for a CPU in proportion; workers wait as the thread that trains does
    whenever it could run.
    """
    if loader.get("num_workers"):
        return cpu_got(steps)
    queued, whole = (sum(step.get(name) or 0.0 for step in steps) for name in ("queued", "seconds"))
    return max(1.0 - queued / whole, 0.0)


def _others_have_the_cpus(
    record: RankRecord, steps: Sequence[dict[str, Any]], loader: dict[str, Any], wait: float
) -> None:
    """Workers on a busy machine deliver late without being slow: a wait that their own making does not explain."""
    workers, free = loader.get("num_workers") or 0, _free(steps, loader)
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


def _seconds(steps: Sequence[dict[str, Any]]) -> list[float]:
    """The job's own time: what the probes took is no part of it."""
    return [max(step["seconds"] - (step["probes"] or 0.0), 1e-9) for step in steps]


def _on_device(record: RankRecord) -> bool:
    return any(step.get("allocated") for step in record.steps)


def _device_waits_too(record: RankRecord) -> None:
    """Waiting hides behind a device that still has work queued; only a drained device makes it cost time."""
    if not _on_device(record):
        return
    arrivals = record.all("arrivals")
    seen, drained = (arrivals[-1]["seen"], arrivals[-1]["drained"]) if arrivals else (0, 0)
    if not seen or drained < seen / 2:
        raise CannotSee(
            f"the host waits for batches, but the device was out of work at {drained} of {seen} arrivals only",
            "Profile ten steps with torch.profiler: its trace shows the device's own timeline.",
        )


def _named(loader: dict[str, Any]) -> str:
    if not loader:
        return ""
    settings = ", ".join(f"{name}={loader[name]}" for name in ("batch_size", "num_workers", "pin_memory"))
    return f": DataLoader({loader['dataset']}, {settings}), samples come from {loader['source']}"
