"""What a record says about the host's memory: of the loaders' workers, and what no container accounts for."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Loader, Rehearsal
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.tensor_operations_and_memory.probes.events import Container, Host, WorkersFill
from torchtriage.specialists.tensor_operations_and_memory.readings.growth import (
    Growth,
    allocated_anew,
    growth_of,
    in_second_epoch,
    series,
)

_SIGKILL = 137  # 128 + 9, as a shell tells it


@detector("run/host-memory-growth")
def host_memory_growth(record: RankRecord) -> Iterator[Sighting]:
    """Memory of the loader's workers, or of the job's own process without a container, grows to the end."""
    theirs = _of_workers(record)
    if theirs is not None:
        count, growth = theirs
        said = f"private memory of {count} loader workers grows by {growth[0] / 1024:.0f} KiB per step"
        in_second_epoch(record, said)
        yield from _by_workers(record, said, growth)
    if record.recent(Container):
        return  # memory-growth tells by what, or why it cannot
    if record.has(Rehearsal) and theirs is None:
        raise CannotSee(
            "the simulated accelerator keeps its memory in the job's own process, which grows with it",
            "Run the job without --accelerator for some hundred steps.",
        )
    own = allocated_anew(record)
    if own is not None:
        said = f"private memory of the job's process grows by {own[0] / 1024:.0f} KiB per step"
        in_second_epoch(record, said)
        yield _sighting(Place(rank=record.rank), f"{said}, newly allocated, and no container with a name", own)


@detector("run/host-out-of-memory")
def host_out_of_memory(record: RunRecord) -> Iterator[Sighting]:
    """The host or the memory limit of its container killed a process of the job."""
    killed = record.ended.oom
    if not killed or not (killed["by"] == "cgroup" or record.ended.code == _SIGKILL):
        return  # the counter of the whole host also counts what belongs to others
    whose = "the memory limit of its control group" if killed["by"] == "cgroup" else "the host"
    named = f": {killed['name']} (process {killed['pid']})" if killed.get("pid") else ""
    held = f", which held {killed['resident'] / 2**30:.1f} GiB" if killed.get("resident") else ""
    fact = f"while the job ran, {whose} killed {killed['kills']} of its processes for memory{named}{held}"
    yield Sighting(Place(step=record.step), fact, float(killed["kills"]))


def _of_workers(record: RankRecord) -> tuple[int, Growth] | None:
    """How many workers there are, and the growth of the latest set of them: older ones have taken theirs with them."""
    readings = [each for each in record.recent(Host) if each.workers]
    readings = [each for each in readings if each.generation == readings[-1].generation]
    if not readings or not any(each.num_workers for each in record.all(Loader)):
        return None
    growth = growth_of(*series(readings, [each.theirs for each in readings]))
    return (readings[-1].workers, growth) if growth else None


def _by_workers(record: RankRecord, said: str, growth: Growth) -> Iterator[Sighting]:
    """What their datasets fill, if anything; and where a sample is made."""
    for each in record.all(WorkersFill):
        for container, path, line in each.places:
            place = Place(path=path, line=line, rank=record.rank, container=container)
            yield _sighting(place, f"{said}; {container} is filled here, in each worker by itself", growth)
    yield _sighting(_place(record), said, growth)


def _sighting(place: Place, said: str, growth: Growth) -> Sighting:
    slope, (low, high), total, _ = growth
    fact = f"{said}, {total / 2**20:.0f} MiB in all, to the end"
    return Sighting(place, fact, slope / 1024, "KiB per step", (low / 1024, high / 1024))


def _place(record: RankRecord) -> Place:
    loader = next(each for each in record.all(Loader) if each.num_workers)
    return Place(path=loader.path or None, line=loader.line or None, rank=record.rank)
