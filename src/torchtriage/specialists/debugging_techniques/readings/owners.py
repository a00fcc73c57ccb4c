"""What a record says about parameters that are in no optimizer."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.debugging_techniques.probes.events import Homeless, Unowned

ENOUGH = 8  # backward passes
PARTS = 4  # of the model that are named
LONG = 1000  # of them, where the job was killed: until its end an optimizer may still be made


@detector("run/parameters-not-in-optimizer")
def parameters_not_in_optimizer(record: RankRecord) -> Iterator[Sighting]:
    """Parameters get gradients in every backward pass, and no optimizer has them."""
    for event in record.all(Unowned)[-1:]:
        backwards = event.backwards
        if backwards < (ENOUGH if event.last else LONG):
            continue
        for group in event.groups:
            place = Place(
                path=group["path"] or None,
                line=group["line"] or None,
                rank=record.rank,
                module=group["module"],
                container=None if group["root"] else group["names"][0],
            )
            sighting = Sighting(place, _fact(group, backwards), float(backwards), "backward passes")
            yield from further(sighting, group.get("further", ()))
            parts = dict.fromkeys(name.rpartition(".")[0] for name in group["names"] if group["root"])
            for part in [each for each in parts if each and each != group["module"]][:PARTS]:
                says = f"what {part} has of its own is among them"
                yield replace(sighting, place=Place(rank=record.rank, module=part), fact=says)


def _fact(group: Homeless, backwards: int) -> str:
    more = f" and {group['count'] - len(group['names'])} more" if group["count"] > len(group["names"]) else ""
    whose = f"of {group['root']}" if group["root"] else "(of no module)"
    fact = f"{', '.join(group['names'])}{more} {whose} got gradients and stood still over {backwards} "
    if group.get("instead"):
        return f"{fact}backward passes: {group['optimizer']}, which steps after them, was given other parameters"
    return f"{fact}backward passes: " + (
        f"made after {group['optimizer']} was built, they are in no optimizer"
        if group["later"]
        else f"{group['optimizer']} did not get them, nor did any other optimizer"
    )
