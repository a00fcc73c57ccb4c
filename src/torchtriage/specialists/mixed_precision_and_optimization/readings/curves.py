"""What the curve of a loss scale says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import log2

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.curves import Curve
from torchtriage.examine.detector import Sighting, detector

LAST = 3  # values at the end, of which none may be above the one before


@detector("curves/scale-collapsing")
def scale_collapsing(curve: Curve) -> Iterator[Sighting]:
    """How often the loss scale was halved from its highest value to the end of the training, where it still falls."""
    points = [(step, value) for step, value in curve.first("scale") if value > 0]
    if len(points) <= LAST:
        return
    highest, (step, last) = max(value for _, value in points), points[-1]
    end = [value for _, value in points[-LAST - 1 :]]
    if all(after <= before for before, after in pairwise(end)) and last < highest:
        fact = f"the loss scale fell from {highest:g} to {last:g} at step {step}, and does not rise again"
        yield Sighting(Place(curve.path, step=step), fact, log2(highest / last), "halvings")
