"""What logs say of memory: the figures in an out-of-memory message."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.said import Said, fact
from torchtriage.examine.detector import Sighting, detector
from torchtriage.specialists.tensor_operations_and_memory.allocator import figures

GIB = 2**30


@detector("log/fragmentation")
def fragmentation(logs: Logs) -> Iterator[Sighting]:
    """An allocation failed that would have fitted into what the allocator keeps unused."""
    for said, sizes in _out_of_memory(logs):
        tried, unused, capacity = (sizes.get(name, 0.0) for name in ("tried", "unallocated", "capacity"))
        if 0 < tried < unused < capacity:
            words = f"{tried / GIB:.2f} GiB were asked for while the allocator kept {unused / GIB:.2f} GiB unused, in"
            told = fact(logs, [said], f"{words} blocks too small, of {capacity / GIB:.2f} GiB")
            yield Sighting(said.place, told, unused / capacity)


@detector("log/other-process-holds-memory")
def other_process_holds_memory(logs: Logs) -> Iterator[Sighting]:
    """Another process holds a part of the device that the failed allocation would have fitted into."""
    for said, sizes in _out_of_memory(logs):
        if not {"capacity", "free", "in_use", "tried"} <= set(sizes):
            continue
        others = sizes["capacity"] - sizes["free"] - sizes["in_use"]
        if sizes["tried"] < others < sizes["capacity"]:
            words = f"{sizes['tried'] / GIB:.2f} GiB were asked for while others held {others / GIB:.2f} of"
            told = fact(logs, [said], f"{words} {sizes['capacity'] / GIB:.2f} GiB")
            yield Sighting(said.place, told, others / sizes["capacity"])


def _out_of_memory(logs: Logs) -> Iterator[tuple[Said, dict[str, float]]]:
    """The messages of the CUDA allocator, each with its figures in bytes."""
    for said in logs.causes:
        if any(each.signature == "cuda-out-of-memory" for each in said.decoded):
            yield said, figures(said.text)
