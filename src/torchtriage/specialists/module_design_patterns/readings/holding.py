"""What a record says about modules and tensors that get gradients and are no part of the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord


@detector("run/unregistered-modules")
def unregistered_modules(record: RankRecord) -> Iterator[Sighting]:
    """Modules in a plain container get gradients, and no optimizer has their parameters."""
    for event in _last(record, "modules"):
        fact = (
            f"{event['tensors']} parameters ({event['size']:,} numbers) in {event['container']} are not among those of"
        )
        yield _sighting(record, event, f"{fact} the model: {event['filled']} backward passes filled their gradients")


@detector("run/unregistered-tensor")
def unregistered_tensor(record: RankRecord) -> Iterator[Sighting]:
    """A plain tensor of a module gets gradients, and no optimizer has it."""
    for event in _last(record, "tensor"):
        fact = f"{event['container']} ({event['size']:,} numbers) is no parameter of the model:"
        yield _sighting(record, event, f"{fact} {event['filled']} backward passes filled its gradient")
    for event in record.all("not-kept"):
        how = "computed from data" if event["how"] == "fitted" else "drawn at random"
        fact = (
            f"{event['name']} ({event['size']:,} numbers) was {how}, and forward uses it: it is neither parameter nor "
        )
        place = Place(
            path=event["path"], line=event["line"], rank=record.rank, module=event["module"], container=event["name"]
        )
        yield Sighting(
            place, f"{fact}buffer, so state_dict() does not hold it and nothing moves it", float(event["step"]), "steps"
        )


def _last(record: RankRecord, what: str) -> list[dict[str, Any]]:
    """What was last said of each attribute that holds WHAT."""
    found = {event["module"]: event for event in record.all("unregistered") if event["what"] == what}
    return list(found.values())


def _sighting(record: RankRecord, event: dict[str, Any], fact: str) -> Sighting:
    place = Place(
        path=event["path"] or None,
        line=event["line"] or None,
        rank=record.rank,
        module=event["module"],
        container=event["container"],
    )
    said = f"{fact}, and nothing moved them" if event["what"] == "modules" else f"{fact}, and nothing moved it"
    return Sighting(place, said, float(event["filled"]), "backward passes")
