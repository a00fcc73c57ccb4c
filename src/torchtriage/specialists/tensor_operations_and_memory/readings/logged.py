"""What logs say of memory: the figures in an out-of-memory message, and processes that the host ended."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.messages import meaning, sightings
from torchtriage.examine.artefact.logs.said import Said, fact
from torchtriage.examine.detector import Sighting, detector
from torchtriage.specialists.tensor_operations_and_memory.allocator import contradictions, figures

GIB = 2**30
_OF_ALLOCATORS = frozenset({"cuda-out-of-memory", "accelerator-out-of-memory"})
_KILLED = re.compile(r"ut of memory|oom[-_]kill|out-of-memory|OOMKilled|memory limit", re.IGNORECASE)
"""That a process was killed is not enough: schedulers and people send SIGKILL as well."""


@detector("log/host-out-of-memory")
def host_out_of_memory(logs: Logs) -> Iterator[Sighting]:
    """The host, its container or its scheduler had no memory left."""
    known = list(sightings(logs, "host-out-of-memory"))
    yield from known
    ended = (said for said in logs.causes if said.kind == "ended" and _KILLED.search(said.text))
    said = next((each for each in ended if meaning(each) is None), None)
    if said is not None and not known:
        yield Sighting(said.place, fact(logs, [said], said.headline))


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
    """The messages of the allocators of devices, each with its figures in bytes."""
    for said in logs.causes:
        if any(each.signature in _OF_ALLOCATORS for each in said.decoded):
            sizes = figures(said.text)
            yield said, {} if contradictions(sizes) else sizes
