"""What the first line of a record says about how the job was started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import Event, RankRecord, RunRecord

PAIRS = (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))


@detector("run/launch-environment")
def launch_environment(record: RunRecord) -> Iterator[Sighting]:
    """The variables that number the processes contradict each other, the process group, or those of other ranks."""
    for rank in record.ranks:
        yield from _alone(rank)
    yield from _unmet(record)
    starts = {rank.rank: start for rank in record.ranks for start in rank.all("start")[:1]}
    if len(starts) > 1 and all((start.get("world_size") or 1) > 1 for start in starts.values()):
        yield from _together(starts)
        yield from _crowded(record, starts)


def _together(starts: dict[int, Event]) -> Iterator[Sighting]:
    """What all ranks of one group should say alike."""
    told: dict[str, Callable[[Event], Any]] = {
        "the size of the process group": lambda start: start.get("world_size"),
        "WORLD_SIZE": lambda start: (start.get("environment") or {}).get("WORLD_SIZE"),
        "the version of torch": lambda start: (start.get("versions") or {}).get("torch"),
        "the version of Python": lambda start: _minor((start.get("versions") or {}).get("python")),
    }
    for what, of in told.items():
        values = {rank: of(start) for rank, start in starts.items() if of(start) is not None}
        first = min(values, default=0)
        other = next((rank for rank in values if values[rank] != values[first]), None)
        if other is not None:
            fact = f"{what} is {values[first]} on rank {first} and {values[other]} on rank {other}"
            yield Sighting(Place(rank=other), fact)
    yield from _scripts(starts)


def _scripts(starts: dict[int, Event]) -> Iterator[Sighting]:
    """One script, of which a host has another edition."""
    known: dict[str, tuple[int, int]] = {}
    for rank, start in starts.items():
        script = start.get("script") or {}
        name, mark = script.get("file"), script.get("mark")
        if name is None or mark is None:
            continue
        first, before = known.setdefault(name, (rank, mark))
        if mark != before:
            fact = f"{name} is not the same text on ranks {first} and {rank}: the ranks run different code"
            yield Sighting(Place(path=name, rank=rank), fact)
            return


def _crowded(record: RunRecord, starts: dict[int, Event]) -> Iterator[Sighting]:
    """Two ranks on one card."""
    seen: dict[tuple[object, ...], int] = {}
    for rank in record.ranks:
        start = starts.get(rank.rank, {})
        for setup in rank.all("setup")[:1]:
            devices = {name for model in setup.get("models") or () for name in model.get("devices") or ()}
            if len(devices) != 1 or not next(iter(devices)).startswith("cuda:"):
                continue
            device = next(iter(devices))
            visible = (start.get("environment") or {}).get("CUDA_VISIBLE_DEVICES")
            first = seen.setdefault((start.get("host"), visible, device), rank.rank)
            if first != rank.rank:
                fact = f"ranks {first} and {rank.rank} both have their model on {device} of {start.get('host')}"
                yield Sighting(Place(rank=rank.rank), f"{fact}: LOCAL_RANK chooses a card for each")


def unmet(record: RunRecord) -> bool:
    """Whether a rank gave up looking for the others, and none had an error of another kind."""
    gone = [bool(rank.all("unjoined")) for rank in record.ranks if rank.all("error")]
    return bool(gone) and all(gone)


def _unmet(record: RunRecord) -> Iterator[Sighting]:
    """Ranks that never found each other, and where each looked."""
    if not unmet(record):
        return
    by_rank = {rank.rank: rank for rank in record.ranks}
    looked = {rank.rank: event for rank in record.ranks for event in rank.all("joining")[-1:]}
    for rank in (rank.rank for rank in record.ranks if rank.all("unjoined")):
        event, error = looked[rank], next(iter(by_rank[rank].all("error")), {})
        others = sorted({str(each["where"]) for each in looked.values()} - {str(event["where"])})
        fact = f"rank {rank} found no process group" + (f" at {event['where']}" if event["where"] else "")
        fact += f", another looked at {others[0]}: all must name one place" if others else ""
        fact += f" ({str(error.get('message'))[:120]})"
        yield Sighting(Place(path=event["path"] or None, line=event["line"] or None, rank=rank), fact)


def _minor(version: str | None) -> str | None:
    return ".".join(version.split(".")[:2]) if version else None


def _alone(record: RankRecord) -> Iterator[Sighting]:
    """What one rank says against itself."""
    for event in record.all("start")[:1]:
        given = {name: int(value) for name, value in event.get("environment", {}).items() if value.isdecimal()}
        said = [
            f"{number} is {given[number]}, {size} {given[size]}: numbers begin with 0"
            for number, size in PAIRS
            if given.get(number, -1) >= given.get(size, given.get(number, 0) + 1)
        ]
        if given.get("LOCAL_WORLD_SIZE", 0) > given.get("WORLD_SIZE", given.get("LOCAL_WORLD_SIZE", 0)):
            said.append(f"LOCAL_WORLD_SIZE is {given['LOCAL_WORLD_SIZE']}, WORLD_SIZE only {given['WORLD_SIZE']}")
        if event.get("world_size") == 1 and given.get("WORLD_SIZE", 1) > 1:
            said.append(f"WORLD_SIZE is {given['WORLD_SIZE']}, and the process group has 1 process: it trains alone")
        if said:
            made: Event = next(iter(record.all("joining")), {})
            place = Place(path=made.get("path") or None, line=made.get("line") or None, rank=record.rank)
            yield Sighting(place, "; ".join(said))
