"""What the curves of a training say of its loss and of its gradients' norm."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from msgspec.structs import replace

from torchtriage.core.evidence import Place
from torchtriage.examine.artefact.curves import Curve
from torchtriage.examine.detector import Sighting, detector
from torchtriage.specialists.debugging_techniques.readings import gradients


@detector("curves/non-finite-origin")
def non_finite_origin(curve: Curve) -> Iterator[Sighting]:
    """A loss of the training, or its gradients' norm, ceased to be finite, and stayed so."""
    for name, least in (
        *((name, 2) for name in curve.named("loss")),
        *((name, 10) for name in curve.named("grad_norm")),
    ):
        points = curve.points[name]
        bad = next((count for count, (_, value) in enumerate(reversed(points)) if isfinite(value)), len(points))
        if bad >= least:
            step, value = points[len(points) - bad]
            before = f"after {len(points) - bad} finite values" if bad < len(points) else "from its first value on"
            fact = f"{name} is {value} {before}, and in all {bad} from step {step} to the end"
            yield Sighting(Place(curve.path, step=step), fact)


@detector("curves/gradients-exploding")
def gradients_exploding(curve: Curve) -> Iterator[Sighting]:
    """The gradients' norm rose a thousand times or more, and the loss went with it."""
    for seen in gradients.gradients_exploding.look(curve.record):
        yield replace(seen, place=Place(curve.path, step=seen.place.step))
