"""What a record says about operations without a slope between parameters and the loss."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.custom_autograd_functions.probes.events import Flat


@detector("run/no-gradient-by-design")
def no_gradient_by_design(record: RankRecord) -> Iterator[Sighting]:
    """Parameters whose gradient is zero in every step, since round or its like lies between them and the loss."""
    for event in record.all(Flat):
        owners = "all" if event.parameters == event.of else f"{event.parameters} of {event.of}"
        named = f" ({', '.join(event.names)}{', …' if event.parameters > len(event.names) else ''})"
        fact = (
            f"{owners} parameters of the loss are reached only through {' and '.join(event.ops)}, whose gradient is "
            f"zero everywhere: theirs was zero in {event.steps} steps of {event.steps}{named if event.names else ''}"
        )
        place = Place(path=event.path or None, line=event.root or event.line or None, rank=record.rank)
        says = [("this loss is differentiated here", event.path, event.line), *event.further]
        yield from further(Sighting(place, fact, float(event.parameters), "parameters"), says)
