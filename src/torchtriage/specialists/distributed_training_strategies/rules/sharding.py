"""What an execution of the program shows about sharded models: their optimizers, and the norm of their gradients."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import External, Object, Spot, truth
from torchtriage.specialists.distributed_training_strategies.rules.data import SHARDED


@detector("source/optimizer-before-sharding")
def optimizer_before_sharding(trainings: Trainings) -> Iterator[Sighting]:
    """An optimizer holds the parameters as they were before sharding replaced them."""

    def find(training: Training) -> Facts:
        made = [each.made for each in training.of(events.Made)]
        for place, wrapper in enumerate(made):
            is_sharded = wrapper.made == SHARDED or wrapper.kind == "shard"
            if not is_sharded or truth(wrapper.keywords.get("use_orig_params", False)) is not False:
                continue
            inside = set(training.executor.parameters(wrapper))
            holding = [each for each in made if each.kind == "optimizer" and inside & set(training.parameters_of(each))]
            if holding and all(made.index(each) < place for each in holding) and holding[0].spot and wrapper.spot:
                yield (
                    _where_made(holding[0].spot, wrapper),
                    f"{wrapper.spot} shards the model, and replaces what is optimized here",
                )

    yield from certain(trainings, find)


def _where_made(made: Spot, wrapper: Object) -> Spot:
    """Where the optimizer MADE could change places with WRAPPER; the call that makes the model as well cannot."""
    spot = made.apart_from(wrapper.spot) if wrapper.spot is not None else made
    model = bare(wrapper).spot if wrapper.kind == "wrapper" else getattr(wrapper.state["module"], "spot", None)
    if model is not None and any(node is spot.node for _, node in model.calls):
        return made.apart_from(model)
    return spot


@detector("source/clip-on-sharded")
def clip_on_sharded(trainings: Trainings) -> Iterator[Sighting]:
    """The gradients of a sharded model are clipped by the norm of this rank's part."""

    def find(training: Training) -> Facts:
        sharded = [each for each in training.executor.wrappers if each.made == SHARDED]
        inside = {parameter for each in sharded for parameter in training.executor.parameters(each)}
        strategies = [each.argument("sharding_strategy", 2) for each in sharded]
        if any(isinstance(each, External) and each.name.endswith("NO_SHARD") for each in strategies):
            return
        for clip in training.of(events.Clip):
            if clip.parameters and inside.issuperset(clip.parameters) and not _is_method(clip.spot):
                yield clip.spot, "each rank sees the norm of its own part, and scales by another factor than the others"

    yield from certain(trainings, find, where_reached=True)


def _is_method(spot: Spot) -> bool:
    """Whether it is the method of a sharded model that clips."""
    called = getattr(spot.node, "func", None)
    owner = ast.unparse(called.value) if isinstance(called, ast.Attribute) else "utils"
    return owner.rpartition(".")[2] not in ("utils", "clip_grad", "nn")
