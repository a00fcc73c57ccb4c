"""What the first line of a record says about how the job was started."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error, Setup, Start, Wrapper
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Joining, Unjoined

PAIRS = (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
VISIBLE = {  # the variables that say which devices a process sees; each process numbers those from 0
    "cuda": ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"),
    "xpu": ("ZE_AFFINITY_MASK",),
    "npu": ("ASCEND_RT_VISIBLE_DEVICES",),
}
OF_ITS_PROCESS = frozenset({"", "cpu", "meta", "mps", "hpu", "xla"})
"""Kinds that have no numbers, or of which each process has its own number 0."""


@detector("run/launch-environment")
def launch_environment(record: RunRecord) -> Iterator[Sighting]:
    """The variables that number the processes contradict each other, the process group, or those of other ranks."""
    for rank in record.ranks:
        yield from _alone(rank)
    yield from _unmet(record)
    starts = {rank.rank: start for rank in record.ranks if (start := rank.first(Start)) is not None}
    if len(starts) > 1 and all(start.world_size > 1 for start in starts.values()):
        yield from _together(starts)
        yield from _crowded(record, starts)


def _together(starts: dict[int, Start]) -> Iterator[Sighting]:
    """What all ranks of one group should say alike."""
    told: dict[str, Callable[[Start], int | str | None]] = {
        "the size of the process group": lambda start: start.world_size,
        "WORLD_SIZE": lambda start: start.environment.get("WORLD_SIZE"),
        "the version of torch": lambda start: start.versions.get("torch"),
        "the version of Python": lambda start: _minor(start.versions.get("python")),
    }
    for what, of in told.items():
        values = {rank: of(start) for rank, start in starts.items() if of(start) is not None}
        first = min(values, default=0)
        other = next((rank for rank in values if values[rank] != values[first]), None)
        if other is not None:
            fact = f"{what} is {values[first]} on rank {first} and {values[other]} on rank {other}"
            yield Sighting(Place(rank=other), fact)
    yield from _scripts(starts)


def _scripts(starts: dict[int, Start]) -> Iterator[Sighting]:
    """One script, of which a host has another edition."""
    known: dict[str, tuple[int, int]] = {}
    for rank, start in starts.items():
        script = start.script or {}
        name, mark = script.get("file"), script.get("mark")
        if name is None or mark is None:
            continue
        first, before = known.setdefault(name, (rank, mark))
        if mark != before:
            fact = f"{name} is not the same text on ranks {first} and {rank}: the ranks run different code"
            yield Sighting(Place(path=name, rank=rank), fact)
            return


def _crowded(record: RunRecord, starts: dict[int, Start]) -> Iterator[Sighting]:
    """Two ranks on one device, the line where the second wraps its model."""
    seen: dict[tuple[object, ...], int] = {}
    for rank in record.ranks:
        start, setup = starts.get(rank.rank) or Start(), rank.first(Setup) or Setup()
        devices = {name for model in setup.models for name in model.get("devices") or ()}
        device = next(iter(devices), "") if len(devices) == 1 else ""
        kind, _, number = device.partition(":")
        # what another kind's process sees of several is not known: of one alone it may be its own
        if not number or kind in OF_ITS_PROCESS or (kind not in VISIBLE and len(start.devices) < 2):
            continue
        visible = tuple(start.environment.get(name) for name in VISIBLE.get(kind, ()))
        first = seen.setdefault((start.host, visible, device), rank.rank)
        if first != rank.rank:
            fact = f"ranks {first} and {rank.rank} both have their model on {device} of {start.host}"
            made = rank.first(Wrapper)
            path, line = (made.path, made.line) if made is not None else ("", 0)
            place = Place(path=path or None, line=line or None, rank=rank.rank)
            yield Sighting(place, f"{fact}: LOCAL_RANK chooses a device for each")


def unmet(record: RunRecord) -> bool:
    """Whether a rank gave up looking for the others, and none had an error of another kind."""
    gone = [rank.has(Unjoined) for rank in record.ranks if rank.has(Error)]
    return bool(gone) and all(gone)


def _unmet(record: RunRecord) -> Iterator[Sighting]:
    """Ranks that never found each other, and where each looked."""
    if not unmet(record):
        return
    looked = {rank.rank: event for rank in record.ranks for event in rank.all(Joining)[-1:]}
    for rank in (each for each in record.ranks if each.has(Unjoined)):
        event, error = looked[rank.rank], rank.first(Error) or Error()
        others = sorted({str(each.where) for each in looked.values()} - {str(event.where)})
        fact = f"rank {rank.rank} found no process group" + (f" at {event.where}" if event.where else "")
        fact += f", another looked at {others[0]}: all must name one place" if others else ""
        fact += f" ({error.message[:120]})"
        yield Sighting(Place(path=event.path or None, line=event.line or None, rank=rank.rank), fact)


def _minor(version: str | None) -> str | None:
    return ".".join(version.split(".")[:2]) if version else None


def _alone(record: RankRecord) -> Iterator[Sighting]:
    """What one rank says against itself."""
    start = record.first(Start) or Start()
    given = {name: int(value) for name, value in start.environment.items() if value.isdecimal()}
    said = [
        f"{number} is {given[number]}, {size} {given[size]}: numbers begin with 0"
        for number, size in PAIRS
        if given.get(number, -1) >= given.get(size, given.get(number, 0) + 1)
    ]
    if given.get("LOCAL_WORLD_SIZE", 0) > given.get("WORLD_SIZE", given.get("LOCAL_WORLD_SIZE", 0)):
        said.append(f"LOCAL_WORLD_SIZE is {given['LOCAL_WORLD_SIZE']}, WORLD_SIZE only {given['WORLD_SIZE']}")
    if start.world_size == 1 and given.get("WORLD_SIZE", 1) > 1:
        said.append(f"WORLD_SIZE is {given['WORLD_SIZE']}, and the process group has 1 process: it trains alone")
    if said:
        joining = record.first(Joining)
        path, line = (joining.path, joining.line) if joining is not None else ("", 0)
        yield Sighting(Place(path=path or None, line=line or None, rank=record.rank), "; ".join(said))
