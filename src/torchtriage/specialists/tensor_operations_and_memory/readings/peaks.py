"""What a record says about the peak of memory on a device: what it is made of, where that matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Start
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.tensor_operations_and_memory.allocator import gib
from torchtriage.specialists.tensor_operations_and_memory.probes.events import MemoryPeak, Residents
from torchtriage.specialists.tensor_operations_and_memory.readings.exhaustion import describe, of_others, shortage

FULL = 0.9  # of the device's memory, at least, is the peak
OTHERS = 0.15  # of the device, at least, is worth taking back first: as on the page of other-process-holds-memory
STEADY = 0.75  # of the peak of the first step, at least, is in use in later ones, which may reach it again unseen
PASSES = ("forward", "backward")
TRAINING = (*PASSES, "optimizer")
HOLDERS = ("parameters", "buffers", "gradients", "states")


@dataclass(frozen=True)
class Peak:
    """bytes: in tensors at most. parts: of them, by holder. others: that stay from step to step without one. made: what
    is neither. asked: bytes that were to be added, and failed. phase: in which that was.
    """

    bytes: float
    parts: dict[str, float]
    others: float
    made: float
    capacity: float
    words: str
    place: Place
    asked: float = 0.0
    phase: str = ""

    @property
    def share_made(self) -> float:
        """Of all that there would have been."""
        return (self.made + self.asked * (self.phase in PASSES)) / (self.bytes + self.asked)

    @property
    def share_held(self) -> float:
        held = sum(self.parts.values()) + self.asked * (self.phase == "optimizer")
        return min(1.0, held / (self.bytes + self.asked))

    @property
    def fact(self) -> str:
        return f"{self.words}: {describe(self.parts, self.others, self.bytes, self.capacity)}"


@detector("run/peak-by-activations")
def peak_by_activations(record: RankRecord) -> Iterator[Sighting]:
    """Most of the peak is what a step makes and lets go: activations."""
    peak = _peak(record)
    if peak is not None:
        fact = f"{peak.fact}; {gib(peak.made)} are made and let go within a step"
        yield Sighting(peak.place, fact, peak.share_made)


@detector("run/peak-by-states")
def peak_by_states(record: RankRecord) -> Iterator[Sighting]:
    """Most of the peak is parameters, gradients and optimizer states."""
    peak = _peak(record)
    if peak is not None:
        yield Sighting(peak.place, peak.fact, peak.share_held)


def _peak(record: RankRecord) -> Peak | None:
    """None where memory was no matter, an evaluation ran out of it or others held it, or the device does not tell."""
    short = shortage(record)
    if short is None:
        return _full(record)
    if short.event.phase == "evaluation" or (of_others(short) or 0.0) > OTHERS * short.sizes.get("capacity", 0.0):
        return None
    total, capacity = short.sizes.get("allocated"), short.sizes.get("capacity")
    parts, others = short.parts, short.event.others
    if total and capacity and others is not None and parts["parameters"]:
        made = max(total - sum(parts.values()) - others, 0.0)
        asked = short.sizes.get("tried", 0.0)
        return Peak(total, parts, others, made, capacity, short.words, short.place, asked, short.event.phase)
    earlier = _by_residents(record, total or 0.0, capacity or _capacity(record))
    if earlier is None:
        raise CannotSee(
            "the device had no memory left before parameters, gradients and optimizer states were measured",
            "Run five steps with a batch that is small enough.",
        )
    return Peak(*earlier, capacity or _capacity(record), short.words, short.place)


def _full(record: RankRecord) -> Peak | None:
    """A device that training nearly fills: not loading, nor an evaluation, nor the first step alone, in which libraries
    try what is fastest.
    """
    residents, risen = record.all(Residents), record.all(MemoryPeak)
    words, place = "the device is nearly full", Place(rank=record.rank)
    if not risen:  # an older record
        capacity, peak = _capacity(record), float(max((row.peak or 0 for row in record.every_step), default=0))
        earlier = _by_residents(record, peak, capacity) if capacity and peak >= FULL * capacity else None
        return Peak(*earlier, capacity, words, place) if earlier else None
    capacity = float(risen[-1].capacity or 0) or _capacity(record)
    last = next((each for each in reversed(risen) if each.phase in TRAINING), None)
    if last is None or not residents or not capacity or last.bytes < FULL * capacity:
        return None
    if not last.at and risen[-1].steady < STEADY * last.bytes:
        return None
    parts = {name: float(vars(residents[-1]).get(name, 0)) for name in HOLDERS}
    parts["gradients"] = float(last.gradients)
    if not last.at and last.phase != "optimizer":
        parts["states"] = 0.0  # which are made as the first step ends
    total, others = float(last.bytes), float(last.others)
    return Peak(total, parts, others, max(total - sum(parts.values()) - others, 0.0), capacity, words, place)


def _by_residents(
    record: RankRecord, peak: float, capacity: float
) -> tuple[float, dict[str, float], float, float] | None:
    """Total, parts, others and what is made within a step, from what rests between steps; None without any measure."""
    told = record.all(Residents)
    if not told or not capacity:
        return None
    total = max([peak, *(float(row.peak or 0) for row in record.every_step)])
    parts = {name: float(vars(told[-1]).get(name, 0)) for name in HOLDERS}
    resting = min((float(row.allocated) for row in record.steps if row.allocated), default=0.0)
    others = max(resting - sum(parts.values()), 0.0)
    return total, parts, others, max(total - sum(parts.values()) - others, 0.0)


def _capacity(record: RankRecord) -> float:
    start = record.first(Start) or Start()
    return float(max((each["memory"] for each in start.devices), default=0))
