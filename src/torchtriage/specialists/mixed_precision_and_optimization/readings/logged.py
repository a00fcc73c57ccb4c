"""What logs show of precision beyond the meaning of one message: a loss scale that was lowered again and again."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.logs import Logs
from torchtriage.examine.artefact.logs.messages import sightings
from torchtriage.examine.artefact.logs.series import SCALE
from torchtriage.examine.detector import Sighting, detector


@detector("log/scale-collapsing")
def scale_collapsing(logs: Logs) -> Iterator[Sighting]:
    """The loss scale fell to its least value."""
    yield from sightings(logs, "scale-collapsing")
    for lost in (each for each in logs.lost if each.name == SCALE):
        fact = f"{lost.bad} steps were skipped for gradients that overflowed, and the loss scale fell to {lost.value:g}"
        yield Sighting(Place(lost.path, lost.line, rank=lost.rank, step=lost.step), fact)
