"""What a run's record says about memory that stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.record import RankRecord

ENOUGH_STEPS = 30
FLOOR = 32 << 20  # bytes: what allocators and lazily loaded code may take after warm-up; memory-growth.md defends it
STEADY = 0.6  # of the slope of the steepest third of the run, at least, in each of the others
POINTS = 240  # steps that are compared pairwise
GRAPHS = 8  # of earlier steps: fewer may be a window that the algorithm needs
CONFIDENCE = 1.96  # standard deviations of a normal distribution that hold 95 %


@detector("run/memory-growth")
def memory_growth(record: RankRecord) -> Iterator[Sighting]:
    """Memory in use grows with the step number, to the end."""
    name, used = _memory(record)
    steps = np.array([step["step"] for step in record.steps], dtype=float)
    slope, spread = _slope(steps, used)
    total = slope * float(steps[-1] - steps[0])
    parts = [_slope(*part)[0] for part in zip(np.array_split(steps, 3), np.array_split(used, 3), strict=True)]
    if total < FLOOR or min(parts) < STEADY * max(parts):
        return
    container = max(record.all("container"), key=lambda event: event["growth"] * event["bytes"], default={})
    if container.get("dataset"):
        raise CannotSee(
            f"{name} memory grows by {slope / 1024:.0f} KiB per step while {container['holder']} fills: "
            "a Dataset that keeps its samples grows until it has seen them all, and hides what else may grow",
            "Run for two epochs and more.",
        )
    place = Place(
        path=container.get("path") or None,
        line=container.get("line") or None,
        rank=record.rank,
        container=container.get("holder"),
    )
    yield Sighting(
        place,
        f"{name} memory grows by {slope / 1024:.0f} KiB per step, {total / 2**20:.0f} MiB over {len(steps)} steps, "
        f"to the end{_filling(container)}",
        slope / 1024,
        "KiB per step",
        (spread[0] / 1024, spread[1] / 1024),
    )


@detector("run/graph-retained")
def graph_retained(record: RankRecord) -> Iterator[Sighting]:
    """The autograd graphs of earlier steps are still alive."""
    counts = record.all("graphs")
    if not counts:
        raise CannotSee(
            f"{len(record.all('step'))} steps, of which ten with a graph are needed", "Let the job run for 20 steps."
        )
    last = counts[-1]
    alive, seen, holder = last["alive"], last["seen"], last.get("holder")
    if alive < GRAPHS or 2 * alive < seen or last.get("bounded"):
        return
    held = f"held by {holder}" if holder else "whose holder has no name in the running functions"
    yield Sighting(
        Place(
            path=last["path"] or None, line=last["line"] or None, rank=record.rank, step=last["step"], container=holder
        ),
        f"the autograd graphs of {alive} of {seen} steps are still alive, {held}{_kept(last)}",
        float(alive),
        "graphs",
    )


def _memory(record: RankRecord) -> tuple[str, Any]:
    steps = record.steps
    if len(steps) < ENOUGH_STEPS:
        raise CannotSee(
            f"{len(steps)} steps after warm-up, {ENOUGH_STEPS} are needed", "Let the job run for 50 steps or more."
        )
    for key, name in (("allocated", "allocated CUDA"), ("rss", "resident")):
        used = [step.get(key) for step in steps]
        if all(used):
            return name, np.array(used, dtype=float)
    raise CannotSee("the system does not tell how much memory the process holds", "Run the job on Linux.")


def _slope(steps: Any, used: Any) -> tuple[float, tuple[float, float]]:
    """Theil and Sen's slope in bytes per step with its 95 % interval: one jump in memory does not move it."""
    if len(steps) > POINTS:
        chosen = np.linspace(0, len(steps) - 1, POINTS).astype(int)
        steps, used = steps[chosen], used[chosen]
    first, second = np.triu_indices(len(steps), 1)
    slopes = np.sort((used[second] - used[first]) / (steps[second] - steps[first]))
    size = len(steps)
    half = int(CONFIDENCE * np.sqrt(size * (size - 1) * (2 * size + 5) / 18) / 2) + 1
    middle = len(slopes) // 2
    low, high = slopes[max(0, middle - half)], slopes[min(len(slopes) - 1, middle + half)]
    return float(np.median(slopes)), (float(low), float(high))


def _filling(container: dict[str, Any]) -> str:
    if not container:
        return "; no container that is alive grew with it"
    per_step = container["growth"] / container["turns"]
    return f"; {container['type']} {container['holder']} grew by {per_step:.1f} entries per step ({container['holds']})"


def _kept(last: dict[str, Any]) -> str:
    kind = last.get("kept")
    if kind is None:
        return ""
    activations = f"{last['bytes'] / 1024:.0f} KiB of tensors" if last["bytes"] > 1024 else "no activations"
    what = {"loss": "a loss after its backward", "output": "an output with its graph", "sum": "a term of a sum"}[kind]
    return f"; each is {what} and keeps {last['nodes']} graph nodes (some 10 KiB per hundred) and {activations}"
