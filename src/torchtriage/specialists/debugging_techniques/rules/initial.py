"""What an execution of the program shows about the weights with which a training begins."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, by_default


@detector("source/dead-units")
def dead_units(trainings: Trainings) -> Iterator[Sighting]:
    """All weights of a network begin at 0: nothing flows through it, and no gradient comes back."""

    def find(training: Training) -> Facts:
        for backward in training.of(events.Backward):
            weights = [each for each in backward.loss.graph if each.name == "weight" and each.owner is not None]
            behind = {each for node in backward.loss.operations for each, _ in node.weights}  # a single layer learns
            zeroed = [each for each in weights if each.zeroed is not None]
            if behind.intersection(zeroed) and len(zeroed) == len(weights) and zeroed[0].zeroed is not None:
                fact = f"the weights of all {len(weights)} layers are 0: so are their outputs, and the gradients of all"
                yield zeroed[0].zeroed, fact

    yield from by_default(trainings, find)
