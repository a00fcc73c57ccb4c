"""What a record says about the files of weights that a job wrote."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.checkpointing_and_reproducibility.probes.events import Hollow


@detector("run/checkpoint-hollow")
def checkpoint_hollow(record: RankRecord) -> Iterator[Sighting]:
    """Weights are saved as zeros, or without numbers, that are neither in the model."""
    event = record.first(Hollow)
    if event is not None:
        parts = [f"{many} {how}" for many, how in ((event.empty, "empty"), (event.zero, "all zeros")) if many]
        fact = (
            f"of the {event.of} parameters of {event.model} that are saved here, {' and '.join(parts)} that are "
            f"not in the model ({event.numbers} numbers): {', '.join(event.names)}"
        )
        place = Place(
            path=event.path or None, line=event.line or None, rank=record.rank, step=event.step,
            module=next(iter(event.names), None),
        )  # fmt: skip
        yield Sighting(place, fact, float(event.numbers), "numbers")
