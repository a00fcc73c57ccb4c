"""What the first line of a record says about how the job was started."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord

PAIRS = (("RANK", "WORLD_SIZE"), ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))


@detector("run/launch-environment")
def launch_environment(record: RankRecord) -> Iterator[Sighting]:
    """The variables that number the processes contradict each other, or the process group."""
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
            yield Sighting(Place(rank=record.rank), "; ".join(said))
