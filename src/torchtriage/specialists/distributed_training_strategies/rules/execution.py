"""What an execution of the program shows about samplers and wrappers."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain
from torchtriage.examine.source.execution.values import Object, truth

_REPLICAS = "torch.nn.parallel.DistributedDataParallel"


@detector("source/sampler-epoch-not-set")
def sampler_epoch_not_set(trainings: Trainings) -> Iterator[Sighting]:
    """A second epoch of training begins, and the sampler was not told: its order is that of the first."""

    def find(training: Training) -> Facts:
        if "set_epoch" in training.blind:
            return
        trained = {loop for each in training.of(events.Backward) for loop, _ in each.loops}
        begun: dict[int, int] = {}
        told: set[int] = set()
        for event in training.executor.events:
            if isinstance(event, events.SetEpoch):
                told.add(id(event.sampler))
            elif isinstance(event, events.Iteration) and event.loops and event.loops[-1][0] in trained:
                sampler = event.loader.argument("sampler", 3)
                if not isinstance(sampler, Object) or sampler.kind != "sampler" or sampler.has_escaped:
                    continue
                shuffles = truth(sampler.argument("shuffle", 3, True)) is True
                begun[id(sampler)] = begun.get(id(sampler), 0) + 1
                if begun[id(sampler)] > 1 and id(sampler) not in told and shuffles and sampler.spot is not None:
                    yield sampler.spot, f"the loop of line {event.spot.line} begins again, and nothing calls set_epoch"

    yield from certain(trainings, find)


@detector("source/wrapper-bypassed")
def wrapper_bypassed(trainings: Trainings) -> Iterator[Sighting]:
    """The model inside of DistributedDataParallel is called itself: its gradients are not averaged."""

    def find(training: Training) -> Facts:
        wrappers = [each for each in training.executor.wrappers if each.made == _REPLICAS]
        called = {id(forward.model) for forward, _ in training.backwards}
        for forward, _ in training.backwards:
            for wrapper in wrappers:
                if wrapper.state["module"] is forward.model and id(wrapper) not in called:
                    yield forward.spot, "DistributedDataParallel wraps this model, and is not what is called"

    yield from certain(trainings, find, where_reached=True)


@detector("source/every-rank-saves")
def every_rank_saves(trainings: Trainings) -> Iterator[Sighting]:
    """Every rank writes the same file."""

    def find(training: Training) -> Facts:
        is_distributed = any(each.made == _REPLICAS for each in training.executor.wrappers)
        for save in training.of(events.Save):
            if is_distributed and not save.guards and isinstance(save.path, str):
                yield save.spot, f"no condition on the rank stands around it: all ranks write {save.path!r}"

    yield from certain(trainings, find, where_reached=True)


@detector("source/collective-on-some-ranks")
def collective_on_some_ranks(trainings: Trainings) -> Iterator[Sighting]:
    """A collective is called where only some of the ranks come."""

    def find(training: Training) -> Facts:
        met = [each for run in trainings.runs for each in run.of(events.Collective)]
        for collective in training.of(events.Collective):
            for line, way in collective.guards:
                others = any((line, not way) in each.guards for each in met)
                if not others:
                    yield (
                        collective.spot,
                        f"the condition of line {line} keeps the other ranks away from {collective.name}",
                    )

    yield from certain(trainings, find, where_reached=True)
