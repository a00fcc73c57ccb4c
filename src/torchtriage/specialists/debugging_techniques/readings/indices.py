"""What a record says about an index that ended the run."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Error
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.debugging_techniques.probes.events import Index


@detector("run/index-out-of-range")
def index_out_of_range(record: RankRecord) -> Iterator[Sighting]:
    """The run ended by an id for which a table has no row, or a label for which a loss has no class."""
    spot = record.first(Error) or Error()
    for event in record.all(Index)[:1]:
        if event.op == "assert":
            raise CannotSee(
                "a device-side assertion ended the run; after it no tensor of the device can be read",
                "Run one epoch on the CPU, or with CUDA_LAUNCH_BLOCKING=1: the error then names the line.",
            )
        place = Place(spot.path or None, spot.line or None, rank=record.rank, step=event.step, module=event.module)
        yield Sighting(place, _STORIES.get(event.op, _label)(event))


def _row(event: Index) -> str:
    where = f" {event.module}" if event.module else ""
    return f"the embedding{where} has {event.limit} rows, 0 to {event.limit - 1}, and was given {_ids(event)}"


def _label(event: Index) -> str:
    return f"{event.op} has {event.limit} classes, 0 to {event.limit - 1}, and was given {_ids(event)}"


def _indexed(event: Index) -> str:
    return f"dimension {event.dimension} has the size {event.limit} and was indexed with {event.high}"


def _ids(event: Index) -> str:
    which = f"{event.high}" if event.low == event.high else f"{event.low} to {event.high}"
    return f"{which} ({event.wrong} of {event.of} values are outside)"


_STORIES = {"embedding": _row, "indexing": _indexed}
