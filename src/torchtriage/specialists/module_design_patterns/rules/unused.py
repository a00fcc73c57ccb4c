"""What an execution of the program shows about layers that nothing uses."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.registration import bare, is_nameless
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Object


@detector("source/parameter-never-used")
def parameter_never_used(trainings: Trainings) -> Iterator[Sighting]:
    """A layer of the model that is trained is optimized, and no forward pass comes to it."""

    def find(training: Training) -> Facts:
        losses = [each.loss for each in training.of(events.Backward)]
        is_seen = training.knows_optimizers and training.executor.is_finished
        if not is_seen or any(loss.is_open or loss.has_escaped for loss in losses):
            return
        held = {each for optimizer in training.optimizers for each in training.parameters_of(optimizer)}
        called = {id(each) for each in training.executor.called}
        models = {id(bare(forward.model)): bare(forward.model) for forward, _ in training.backwards}
        for model in models.values():
            for name, layer in _left_over(training, model, called):
                own = set(training.executor.parameters(layer))
                if own and own <= held and layer.spot is not None and not any(own & loss.graph for loss in losses):
                    yield layer.spot, f"`{name}` is optimized, and no forward pass comes to it"

    yield from certain(trainings, find)


def _left_over(training: Training, model: Object, called: set[int]) -> Iterator[tuple[str, Object]]:
    """The parts of MODEL that were not CALLED, with their names: of lists and dicts none, of which some are chosen.

    Each module is looked through once, as by `modules()`: a part may know the whole model, or be in two of its parts.
    """
    waiting, through = [model], {id(model)}
    while waiting:
        whole = waiting.pop(0)
        if whole.has_escaped or whole.cls is None:
            continue
        for name, part in training.executor.children(whole):
            if is_nameless(name):  # the forward pass may choose by name, too: of named_children(), those of a prefix
                continue
            inside = {id(each) for each in training.executor.modules(part)}
            if id(part) in called or inside & called:
                if "items" not in part.state and id(part) not in through:
                    through.add(id(part))
                    waiting.append(part)
            elif part.cls is not None or not isinstance(part.state.get("items"), list):  # of a list, some are chosen
                yield name, part
