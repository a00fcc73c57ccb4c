"""What an execution of the program shows about what losses are given, and how often they are gone back from."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import GraphNode, Tensor
from torchtriage.examine.source.execution.graphs import BEFORE
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import truth
from torchtriage.examine.source.torch_api.symbols import symbols


@detector("source/wrong-loss-input")
def wrong_loss_input(trainings: Trainings) -> Iterator[Sighting]:
    """A loss is given what it cannot be meant for: probabilities where it takes their logarithms, and the like."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LossCall):
            first = call.inputs[0] if call.inputs else None
            why = _unfit(call.name, first) if isinstance(first, Tensor) and first.graph else ""
            if why and isinstance(first, Tensor):
                yield first.activated or call.spot, f"{why} ({call.spot})"

    yield from certain(trainings, find, where_reached=True)


def _unfit(loss: str, given: Tensor) -> str:
    """Why the function LOSS cannot be meant for GIVEN; "" where it can."""
    if loss == "nll_loss" and given.activation == "softmax":
        return "nll_loss expects log-probabilities, and gets the probabilities of a softmax"
    if loss == "nll_loss" and given.layer:
        return f"nll_loss expects log-probabilities, and gets the output of {given.layer}: the loss has no lower bound"
    if f"torch.nn.functional.{loss}" in symbols().activating_losses and given.activation == "relu":
        return f"{loss} expects scores of any sign, and a relu has made all of them positive or zero"
    if loss == "binary_cross_entropy" and given.layer:
        return f"binary_cross_entropy expects probabilities from 0 to 1, and gets the output of {given.layer}"
    return ""


@detector("source/backward-twice")
def backward_twice(trainings: Trainings) -> Iterator[Sighting]:
    """Backward comes to operations whose graph an earlier call has freed."""

    def find(training: Training) -> Facts:
        freed: dict[GraphNode, events.Backward] = {}
        for backward in training.of(events.Backward):
            loss = backward.loss
            # a sum keeps nothing that could be freed, a layer does
            shared = [freed[each] for each in loss.operations if each in freed and each.is_of_layer]
            is_carried = len(loss.ages - {BEFORE}) > 1  # from one iteration to the next: a state that is not detached
            is_sure = not (loss.has_escaped or loss.is_open or is_carried)
            if shared and loss.graph and (is_sure or any(each.loss is loss for each in shared)):
                yield (
                    backward.spot,
                    f"{shared[0].spot} has gone back through a part of this graph, and freed it",
                )
            keeps = {"retain_graph", "create_graph", "**"} & backward.keywords.keys()
            if not any(truth(backward.keywords[each]) is not False for each in keeps):
                freed |= dict.fromkeys(loss.operations, backward)

    yield from certain(trainings, find, where_reached=True)
