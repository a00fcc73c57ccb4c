"""What a record says about graphs that backward was told to retain."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.tensor_operations_and_memory.probes.events import RetainedGraph

IDLE = 10  # graphs that were retained for nothing: fewer may be the exception


@detector("run/retain-graph-needless")
def retain_graph_needless(record: RankRecord) -> Iterator[Sighting]:
    """Graphs were retained, and nothing went through them a second time."""
    latest = {(event.path, event.line): event for event in record.all(RetainedGraph)}
    for event in latest.values():
        if event.idle >= IDLE and not event.needed and not event.maybe:
            yield Sighting(
                Place(path=event.path or None, line=event.line or None, rank=record.rank),
                f"backward was told to retain its graph here; {event.idle} such graphs were followed, and each was "
                "let go before anything went through it a second time",
                float(event.idle),
                "graphs",
            )
