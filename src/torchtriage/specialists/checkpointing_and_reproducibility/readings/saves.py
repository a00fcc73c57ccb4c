"""What a record says about the files of weights that a job wrote."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord


@detector("run/checkpoint-hollow")
def checkpoint_hollow(record: RankRecord) -> Iterator[Sighting]:
    """Weights are saved as zeros, or without numbers, that are neither in the model."""
    for event in record.all("hollow"):
        parts = [f"{event[how]} {said}" for how, said in (("empty", "empty"), ("zero", "all zeros")) if event[how]]
        fact = (
            f"of the {event['of']} parameters of {event['model']} that are saved here, {' and '.join(parts)} that are "
            f"not in the model ({event['numbers']} numbers): {', '.join(event['names'])}"
        )
        names = event["names"]
        where = {"path": event["path"] or None, "line": event["line"] or None, "module": names[0] if names else None}
        yield Sighting(Place(rank=record.rank, step=event["step"], **where), fact, float(event["numbers"]), "numbers")
        return
