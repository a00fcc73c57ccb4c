"""What a record says about modules and tensors that get gradients and are no part of the model."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.module_design_patterns.probes.events import NotKept, Unregistered


@detector("run/unregistered-modules")
def unregistered_modules(record: RankRecord) -> Iterator[Sighting]:
    """Modules in a plain container get gradients, and no optimizer has their parameters."""
    for event in _last(record, "modules"):
        fact = f"{event.tensors} parameters ({event.size:,} numbers) in {event.container} are not among those of"
        yield _sighting(record, event, f"{fact} the model: {event.filled} backward passes filled their gradients")


@detector("run/unregistered-tensor")
def unregistered_tensor(record: RankRecord) -> Iterator[Sighting]:
    """A plain tensor of a module gets gradients, and no optimizer has it."""
    for event in _last(record, "tensor"):
        fact = f"{event.container} ({event.size:,} numbers) is no parameter of the model:"
        yield _sighting(record, event, f"{fact} {event.filled} backward passes filled its gradient")
    for tensor in record.all(NotKept):
        how = "computed from data" if tensor.how == "fitted" else "drawn at random"
        fact = f"{tensor.name} ({tensor.size:,} numbers) was {how}, and forward uses it: it is neither parameter nor "
        place = Place(path=tensor.path, line=tensor.line, rank=record.rank, module=tensor.module, container=tensor.name)
        yield Sighting(
            place, f"{fact}buffer, so state_dict() does not hold it and nothing moves it", float(tensor.step), "steps"
        )


def _last(record: RankRecord, what: str) -> list[Unregistered]:
    """What was last said of each attribute that holds WHAT."""
    found = {event.module: event for event in record.all(Unregistered) if event.what == what}
    return list(found.values())


def _sighting(record: RankRecord, event: Unregistered, fact: str) -> Sighting:
    place = Place(
        path=event.path or None,
        line=event.line or None,
        rank=record.rank,
        module=event.module,
        container=event.container,
    )
    said = f"{fact}, and nothing moved them" if event.what == "modules" else f"{fact}, and nothing moved it"
    return Sighting(place, said, float(event.filled), "backward passes")
