"""What a record says about the peak of memory on a CUDA device: what it is made of, where that matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Error, Start
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.tensor_operations_and_memory.allocator import figures
from torchtriage.specialists.tensor_operations_and_memory.probes.events import Residents

FULL = 0.9  # of the device's memory, at least, is the peak
OUT = "CUDA out of memory"
GIB = 2**30


@dataclass(frozen=True)
class Peak:
    """bytes: in tensors at most. resting: least of what stays from step to step. out: the run ended for lack of it."""

    bytes: float
    resting: float
    states: dict[str, float]
    capacity: float
    out: bool
    place: Place

    def said(self) -> str:
        parts = ", ".join(f"{name} {size / GIB:.2f}" for name, size in self.states.items() if size)
        end = "the run ended for lack of memory" if self.out else "the device is nearly full"
        return f"{end}: of {self.capacity / GIB:.2f} GiB tensors held {self.bytes / GIB:.2f} at the peak ({parts} GiB)"


@detector("run/peak-by-activations")
def peak_by_activations(record: RankRecord) -> Iterator[Sighting]:
    """Most of the peak is what a step makes and lets go: activations."""
    peak = _peak(record)
    if peak is not None:
        passing = peak.bytes - max(peak.resting, sum(peak.states.values()))
        fact = f"{peak.said()}; {passing / GIB:.2f} GiB of them are made and let go within a step"
        yield Sighting(peak.place, fact, max(0.0, passing / peak.bytes))
    elif _out_of_memory(record) and not record.has(Residents):
        raise CannotSee(
            "the device had no memory left before parameters, gradients and optimizer states were measured",
            "Run five steps with a batch that is small enough.",
        )


@detector("run/peak-by-states")
def peak_by_states(record: RankRecord) -> Iterator[Sighting]:
    """Most of the peak is parameters, gradients and optimizer states."""
    peak = _peak(record)
    if peak is not None:
        yield Sighting(peak.place, peak.said(), min(1.0, sum(peak.states.values()) / peak.bytes))


@detector("run/fragmentation")
def fragmentation(record: RankRecord) -> Iterator[Sighting]:
    """An allocation failed that would have fitted into what the allocator keeps unused."""
    error = _out_of_memory(record)
    sizes = figures(error.message) if error else {}
    if not {"capacity", "tried", "unallocated"} <= set(sizes):
        return
    tried, unused, capacity = sizes["tried"], sizes["unallocated"], sizes["capacity"]
    if unused > tried:
        fact = f"{tried / GIB:.2f} GiB were asked for while the allocator kept {unused / GIB:.2f} GiB unused, in"
        yield Sighting(
            _place(record, error), f"{fact} blocks too small, of {capacity / GIB:.2f} GiB", unused / capacity
        )


def _peak(record: RankRecord) -> Peak | None:
    """None where memory was no matter, there is no CUDA device, or it ended before the states were measured."""
    error = _out_of_memory(record)
    sizes = figures(error.message) if error else {}
    start = record.first(Start) or Start()
    capacity = sizes.get("capacity") or max((each["memory"] for each in start.devices), default=0)
    peak = max([sizes.get("allocated", 0.0), *(row.peak or 0 for row in record.every_step)])
    if not capacity or not (error or peak >= FULL * capacity):
        return None
    told = record.all(Residents)
    if not told:
        return None
    last = told[-1]
    states = {
        "parameters": float(last.parameters),
        "buffers": float(last.buffers),
        "gradients": float(last.gradients),
        "states": float(last.states),
    }
    resting = min((row.allocated for row in record.steps if row.allocated), default=0.0)
    return Peak(peak, resting, states, capacity, bool(error), _place(record, error))


def _out_of_memory(record: RankRecord) -> Error | None:
    error = record.first(Error)
    return error if error is not None and OUT in error.message else None


def _place(record: RankRecord, error: Error | None) -> Place:
    if error is None:
        return Place(rank=record.rank)
    return Place(path=error.path or None, line=error.line or None, rank=record.rank, step=error.step)
