"""What a record says about layers with weights that forward passes construct."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Made
from torchtriage.examine.run.record import RankRecord

OFTEN = 0.5  # of the passes since the first: a layer that is made when a shape changes is made seldom


@detector("run/layer-built-in-forward")
def layer_built_in_forward(record: RankRecord) -> Iterator[Sighting]:
    """A forward pass constructs a layer with weights at every call."""
    lines: dict[tuple[str, int], Made] = {(each.path, each.line): each for each in record.all(Made)}
    for (path, line), event in lines.items():
        if event.passes < OFTEN * event.of or event.touched or 2 * event.kept < event.made:
            continue
        place = Place(path=path or None, line=line or None, rank=record.rank, module=event.module)
        fact = f"{event.layer} was made anew in {event.passes} of {event.of} forward passes"
        said = f"{fact}: its {event.size:,} weights take part, learn nothing and are dropped"
        yield Sighting(place, said, float(event.passes), "passes")
