"""What the records of several ranks say of the files that they saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Start
from torchtriage.examine.run.record import RunRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Save

Key = tuple[str, int, int]  # host, mark of the path, step


@detector("run/every-rank-saves")
def every_rank_saves(record: RunRecord) -> Iterator[Sighting]:
    """Several ranks of one host write the same file in the same step."""
    found: dict[Key, dict[int, Save]] = defaultdict(dict)
    for rank in record.ranks:
        host = (rank.first(Start) or Start()).host or ""
        for event in rank.all(Save):
            found[(host, event.mark, event.step)][rank.rank] = event
    shared = [by_rank for by_rank in found.values() if len(by_rank) > 1]
    lines = {_at(event) for by_rank in shared for event in by_rank.values()}
    for path, line in sorted(lines):
        here = [by_rank for by_rank in shared if any(_at(event) == (path, line) for event in by_rank.values())]
        first, ranks = here[0], sorted(here[0])
        one = first[ranks[0]]
        whom = " and ".join(map(str, ranks)) if len(ranks) < 3 else f"{ranks[0]} to {ranks[-1]}"
        fact = f"ranks {whom} wrote {one.file} in step {one.step}, {len(here)} times in all: one file, "
        fact += f"{len(ranks)} writers"
        yield Sighting(Place(path=path or None, line=line or None, step=one.step), fact, float(len(ranks)), "ranks")


def _at(event: Save) -> tuple[str, int]:
    return event.path, event.line
