"""What a record says about a device that had no memory left: what held it, and what else would have fitted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.tensor_operations_and_memory.allocator import contradictions, figures, gib
from torchtriage.specialists.tensor_operations_and_memory.probes.events import OutOfMemory

ENOUGH = 20  # steps, before which a search for the largest batch may still be going on
RECURRENT = (
    3  # steps of the second half of the run, at least, in which it ran out of memory: a search has ended by then
)
_SAYS = re.compile(r"^\w{2,12}(?: backend| error:)? out of memory", re.IGNORECASE)
_PHASES = {"forward": "in the forward pass", "backward": "in the backward pass", "optimizer": "in the optimizer's step",
           "evaluation": "in an evaluation"}  # fmt: skip


@dataclass(frozen=True)
class Shortage:
    """An allocation that failed and that the job did not just try: it ended over it, or goes on running into it.

    sizes: the figures of its message and of the device, in bytes. words: how often, and what became of it.
    """

    event: OutOfMemory
    place: Place
    sizes: dict[str, float]
    words: str
    is_end: bool

    @property
    def parts(self) -> dict[str, float]:
        """Bytes by holder."""
        names = ("parameters", "buffers", "gradients", "states")
        return {name: float(vars(self.event).get(name) or 0) for name in names}

    @property
    def request(self) -> str:
        tried, free = self.sizes.get("tried"), self.sizes.get("free")
        asked = f"{gib(tried)} were asked for" if tried is not None else "no memory was left"
        where = _PHASES.get(self.event.phase, "")
        has = f" with {gib(free)} free" if free is not None else ""
        return f"{asked}{has}{' ' + where if where else ''}"


@detector("run/device-out-of-memory")
def device_out_of_memory(record: RankRecord) -> Iterator[Sighting]:
    """The device ran out of memory, and the job ended or goes on running out of it."""
    short = shortage(record)
    if short is None:
        return
    held = describe(short.parts, short.event.others, short.sizes.get("allocated"), short.sizes.get("capacity"))
    kept = "it was tried again while the error of the try before was being handled, which keeps the tensors of that try"
    said = (short.words, short.request, held, kept if short.event.is_in_handler else "")
    yield Sighting(short.place, "; ".join(each for each in said if each))


@detector("run/fragmentation")
def fragmentation(record: RankRecord) -> Iterator[Sighting]:
    """An allocation failed that would have fitted into what the allocator keeps unused."""
    short = shortage(record)
    if short is None or not {"capacity", "tried", "unallocated"} <= set(short.sizes):
        return
    tried, unused, capacity = (short.sizes[name] for name in ("tried", "unallocated", "capacity"))
    if unused > tried:
        fact = f"{gib(tried)} were asked for while the allocator kept {gib(unused)} unused, in blocks too small, of"
        yield Sighting(short.place, f"{fact} {gib(capacity)}", unused / capacity)


@detector("run/other-process-holds-memory")
def other_process_holds_memory(record: RankRecord) -> Iterator[Sighting]:
    """Others hold a part of the device that the failed allocation would have fitted into."""
    short = shortage(record)
    others = of_others(short) if short is not None else None
    if short is not None and others is not None:
        tried, capacity = short.sizes["tried"], short.sizes["capacity"]
        fact = f"{gib(tried)} were asked for while others held {gib(others)} of {gib(capacity)}"
        yield Sighting(short.place, fact, others / capacity)


def of_others(short: Shortage) -> float | None:
    """Bytes that neither are free nor belong to this process, where what was asked for would have fitted into them."""
    sizes = short.sizes
    if not {"capacity", "free", "tried", "reserved"} <= set(sizes):
        return None
    others = sizes["capacity"] - sizes["free"] - max(sizes["reserved"], sizes.get("in_use", 0.0))
    return others if sizes["tried"] < others < sizes["capacity"] else None


def shortage(record: RankRecord) -> Shortage | None:
    """The allocation over which the job ended, or else the latest of those that fail again and again."""
    events = record.all(OutOfMemory)
    error = record.first(Error)
    if error is not None and _SAYS.search(error.message):
        known = [each for each in events if each.step == error.step]
        event = known[-1] if known else _without_probe(error)
        return _shortage(record, event, "the run ended for lack of memory", is_end=True, error=error)
    tried_again = [each for each in events if error is not None and each.step == error.step]
    if error is not None and len(tried_again) > 1:  # a batch that was made smaller until nothing was left of it
        words = f"{len(tried_again)} allocations failed in a row, the job caught them and ended over {error.error}"
        return _shortage(record, tried_again[-1], words, is_end=True)
    steps = record.count
    lines = {(each.path, each.line): each for each in events}
    for where, last in lines.items() if steps >= ENOUGH else ():
        before = [each for each in events if (each.path, each.line) == where and each.step < steps / 2]
        late = last.steps - max((each.steps for each in before), default=0)
        if late >= RECURRENT:
            words = f"{last.steps} of {steps} steps ran out of memory here, and the job caught the error"
            return _shortage(record, last, words, is_end=False)
    return None


def _without_probe(error: Error) -> OutOfMemory:
    """Of a record that the probe has not seen: of an older one, or of a device whose error is one of its own."""
    return OutOfMemory(
        step=error.step, message=error.message, path=error.path or "", line=error.line or 0, phase="", others=None
    )


def _shortage(
    record: RankRecord, event: OutOfMemory, words: str, *, is_end: bool, error: Error | None = None
) -> Shortage:
    path, line = (error.path, error.line) if error is not None and error.path else (event.path, event.line)
    place = Place(path=path or None, line=line or None, rank=record.rank, step=event.step)
    return Shortage(event, place, _sizes(event), words, is_end)


def _sizes(event: OutOfMemory) -> dict[str, float]:
    """The message has the figures of the moment itself; what it lacks, the device has told just after."""
    said = figures(event.message)
    said = {} if contradictions(said) else said
    names = ("allocated", "reserved", "free", "capacity")
    sizes = {name: float(value) for name in names if (value := getattr(event, name, None)) is not None} | said
    if "unallocated" not in sizes and {"reserved", "allocated"} <= set(sizes):
        sizes["unallocated"] = sizes["reserved"] - sizes["allocated"]
    return sizes


def describe(parts: dict[str, float], others: float | None, total: float | None, capacity: float | None) -> str:
    """What TOTAL bytes in tensors are made of, as far as that is known."""
    if total is None:
        return ""
    of = f"of {gib(capacity)} tensors held {gib(total)}" if capacity else f"tensors held {gib(total)}"
    known = [f"{gib(size)} {name}" for name, size in parts.items() if size]
    if others is None:
        return f"{of} ({', '.join(known)})" if known else of
    passing = max(total - sum(parts.values()) - others, 0.0)
    known += [f"{gib(size)} {name}" for name, size in (("others that stay", others), ("of the step", passing)) if size]
    return f"{of} ({', '.join(known)})"
