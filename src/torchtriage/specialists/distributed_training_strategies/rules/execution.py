"""What an execution of the program shows about samplers and wrappers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.modules import bare
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain
from torchtriage.examine.source.execution.values import External, Object, Spot, Unknown, Value, truth

_SHARDED = "torch.distributed.fsdp.FullyShardedDataParallel"


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
            elif isinstance(event, events.Iteration) and _is_of_training(event, trained):
                sampler = event.loader.argument("sampler", 3)
                if not isinstance(sampler, Object) or sampler.kind != "sampler" or sampler.has_escaped:
                    continue
                shuffles = truth(sampler.argument("shuffle", 3, True)) is True
                begun[id(sampler)] = begun.get(id(sampler), 0) + 1
                if begun[id(sampler)] > 1 and id(sampler) not in told and shuffles and sampler.spot is not None:
                    yield sampler.spot, f"the loop of line {event.spot.line} begins again, and nothing calls set_epoch"

    yield from certain(trainings, find)


def _is_of_training(turn: events.Iteration, trained: set[int]) -> bool:
    """Whether the epoch of TURN is one of training: its loop goes back, or asks a generator for batches."""
    is_asked = turn.is_cycled and any(loop in trained for loop, _ in turn.loops)
    return is_asked or bool(turn.loops and turn.loops[-1][0] in trained)


@detector("source/wrapper-bypassed")
def wrapper_bypassed(trainings: Trainings) -> Iterator[Sighting]:
    """The model inside of DistributedDataParallel is called itself: its gradients are not averaged."""

    def find(training: Training) -> Facts:
        wrappers = training.replicas
        called = {id(forward.model) for forward, _ in training.backwards}
        for forward, _ in training.backwards:
            for wrapper in wrappers:
                inside = training.executor.modules(wrapper.state["module"])
                if forward.model in inside and id(wrapper) not in called:
                    yield (
                        _outside(forward.spot, inside[0]),
                        "DistributedDataParallel wraps this model, and is not what is called",
                    )

    yield from certain(trainings, find, where_reached=True)


def _outside(spot: Spot, model: Object) -> Spot:
    """The call that led into MODEL, where SPOT stands within a method of it."""
    home = model.cls.path if model.cls is not None else ""
    outer = [each for each in spot.calls if each[0] != home]
    return Spot(*outer[-1]) if spot.path == home and outer else spot


@detector("source/every-rank-saves")
def every_rank_saves(trainings: Trainings) -> Iterator[Sighting]:
    """Every rank writes the same file."""

    def find(training: Training) -> Facts:
        for save in training.of(events.Save):
            is_of_rank = isinstance(save.path, Unknown) and (save.path.is_of_rank or _OWN.search(save.path.why))
            if training.replicas and not save.guards and not is_of_rank:
                what = repr(save.path) if isinstance(save.path, str) else "the same file"
                yield save.spot, f"no condition on the rank stands around it: all ranks write {what}"

    yield from certain(trainings, find, where_reached=True)


_OWN = re.compile(r"tempfile|mkdtemp|uuid|getpid|hostname|time|rank|local", re.IGNORECASE)
"""What a path is called, or made of, that is another one on every rank."""


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


@detector("source/same-data-on-ranks")
def same_data_on_ranks(trainings: Trainings) -> Iterator[Sighting]:
    """A model on every rank is trained on a loader that gives all of them the same samples."""

    def find(training: Training) -> Facts:
        wrapped = {id(each) for each in training.replicas}
        loops = {each.loops[-1][0] for each, _ in training.backwards if each.loops and id(each.model) in wrapped}
        if training.mentions(_SHARDS):
            return
        for turn in training.of(events.Iteration):
            loader = turn.loader
            given = {"sampler", "batch_sampler", "**"} & loader.keywords.keys()
            is_whole = (
                not loader.has_escaped
                and len(loader.arguments) < 4
                and not any(loader.keywords[each] is not None for each in given)
            )
            if (
                turn.loops
                and turn.loops[-1][0] in loops
                and is_whole
                and loader.spot
                and not _is_of_rank(loader)
                and not _is_stream(loader)
            ):
                yield loader.spot, "no DistributedSampler is here: every rank goes through all samples"

    yield from certain(trainings, find)


_SHARDS = re.compile(rb"split_dataset_by_node|\.shard\(|num_shards|webdataset|rank::|get_worker_info")


def _is_stream(loader: Object) -> bool:
    """Whether LOADER reads a dataset that takes no sampler."""
    dataset = loader.argument("dataset", 0)
    cls = dataset.cls if isinstance(dataset, Object) else None
    return cls is not None and "torch.utils.data.IterableDataset" in cls.externals


def _is_of_rank(value: Value, deep: int = 0) -> bool:
    """Whether VALUE was made of something that differs among the ranks."""
    if isinstance(value, Unknown):
        return value.is_of_rank
    if isinstance(value, Object) and deep < 3:
        inside = (*value.arguments, *value.keywords.values(), *value.values.values())
        return value.has_escaped or any(_is_of_rank(each, deep + 1) for each in inside)
    return isinstance(value, list | tuple) and any(_is_of_rank(each, deep + 1) for each in value[:20])


@detector("source/moved-after-wrapping")
def moved_after_wrapping(trainings: Trainings) -> Iterator[Sighting]:
    """A model is moved to its device when DistributedDataParallel has wrapped it."""

    def find(training: Training) -> Facts:
        moved: set[int] = set()
        wrapped: dict[int, Object] = {}
        for event in training.executor.events:
            if isinstance(event, events.Move):
                late = wrapped.get(id(event.module)) if event.device is not None or _is_cuda(event.spot) else None
                if late is not None and id(bare(late)) not in moved and late.spot is not None:
                    yield (
                        event.spot,
                        f"line {late.spot.line} has wrapped the model, whose parameters were not there yet",
                    )
                moved |= {id(each) for each in training.executor.modules(event.module)}
            elif isinstance(event, events.Made) and event.made in training.replicas:
                wrapped |= {id(event.made): event.made, id(bare(event.made)): event.made}

    yield from certain(trainings, find, where_reached=True)


def _is_cuda(spot: Spot) -> bool:
    """Whether the call at SPOT is `.cuda()`."""
    return getattr(getattr(spot.node, "func", None), "attr", "") == "cuda"


@detector("source/no-sync-missing")
def no_sync_missing(trainings: Trainings) -> Iterator[Sighting]:
    """Gradients of several batches are added up, and averaged over the ranks for each of them."""

    def find(training: Training) -> Facts:
        if training.mentions(_HELD):
            return
        wrapped = [
            each for each in training.replicas if any(each is forward.model for forward, _ in training.backwards)
        ]
        held = {parameter for each in wrapped for parameter in training.executor.parameters(each)}
        for step in training.of(events.OptimizerStep):
            summed = [each for parameter, each in step.gradients if parameter in held and len(each.by) - each.used > 1]
            lines = {(spot.path, spot.line) for each in summed[:1] for spot, _ in each.by[each.used :]}
            if summed and len(summed) == len(step.gradients) and len(lines) == 1:
                spot, _ = summed[0].by[-1]
                yield (
                    spot,
                    f"line {step.spot.line} steps once in {len(summed[0].by)} batches, and each averages its gradients",
                )

    yield from certain(trainings, find)


_HELD = re.compile(rb"no_sync|require_backward_grad_sync|set_requires_gradient_sync")


@detector("source/optimizer-before-sharding")
def optimizer_before_sharding(trainings: Trainings) -> Iterator[Sighting]:
    """An optimizer holds the parameters as they were before sharding replaced them."""

    def find(training: Training) -> Facts:
        made = [each.made for each in training.of(events.Made)]
        for place, wrapper in enumerate(made):
            is_sharded = wrapper.made == _SHARDED or wrapper.kind == "shard"
            if not is_sharded or truth(wrapper.keywords.get("use_orig_params", False)) is not False:
                continue
            inside = set(training.executor.parameters(wrapper))
            holding = [each for each in made if each.kind == "optimizer" and inside & set(training.parameters_of(each))]
            if holding and all(made.index(each) < place for each in holding) and holding[0].spot and wrapper.spot:
                yield holding[0].spot, f"line {wrapper.spot.line} shards the model, and replaces what is optimized here"

    yield from certain(trainings, find)


@detector("source/clip-on-sharded")
def clip_on_sharded(trainings: Trainings) -> Iterator[Sighting]:
    """The gradients of a sharded model are clipped by the norm of this rank's part."""

    def find(training: Training) -> Facts:
        sharded = [each for each in training.executor.wrappers if each.made == _SHARDED]
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
    return isinstance(called, ast.Attribute) and getattr(called.value, "id", "utils") not in (
        "utils",
        "clip_grad",
        "nn",
    )


@detector("source/global-rank-as-device")
def global_rank_as_device(trainings: Trainings) -> Iterator[Sighting]:
    """The number of a process in the whole job is taken for that of a device of its machine."""

    def find(training: Training) -> Facts:
        if training.mentions(_ONE_MACHINE):
            return
        for event in training.executor.events:
            given: tuple[Value, ...] = ()
            if isinstance(event, events.LibraryCall) and event.name == "torch.cuda.set_device":
                given = (*event.arguments[:1], *event.keywords.values())
            elif isinstance(event, events.Move):
                given = (event.device,)
            elif isinstance(event, events.Made) and event.made in training.replicas:
                devices = event.made.argument("device_ids", 1)
                given = tuple(devices) if isinstance(devices, list | tuple) else ()
            if any(isinstance(each, Unknown) and each.why in _GLOBAL for each in given):
                yield event.spot, "on a second machine the ranks go on counting, and its devices begin at 0"
                return

    yield from certain(trainings, find, where_reached=True)


_GLOBAL = frozenset({"get_rank", "RANK", "SLURM_PROCID"})
_ONE_MACHINE = re.compile(rb"spawn\(|start_processes|Process\(|single[ _-]node", re.IGNORECASE)


@detector("source/handle-not-waited")
def handle_not_waited(trainings: Trainings) -> Iterator[Sighting]:
    """What an asynchronous collective or transfer gives is never waited for."""

    def find(training: Training) -> Facts:
        waited = {id(each.handle) for each in training.of(events.Handle)}
        for made in training.of(events.Made):
            handle = made.made
            is_open = handle.kind == "handle" and not handle.has_escaped and id(handle) not in waited
            if is_open and "wait" not in training.blind:
                yield made.spot, f"nothing waits for {handle.made}: its tensor may be read before it has come"

    yield from certain(trainings, find)


@detector("source/metrics-not-reduced")
def metrics_not_reduced(trainings: Trainings) -> Iterator[Sighting]:
    """Each rank evaluates its share of the data, and one rank's figure is told for all."""

    def find(training: Training) -> Facts:
        if not training.replicas or training.mentions(_REDUCES):
            return
        turn: events.Iteration | None = None
        read: events.Read | None = None
        for event in training.executor.events:
            if isinstance(event, events.Collective) and event.name not in ("barrier", "broadcast"):
                turn = read = None
            elif isinstance(event, events.Read) and turn is not None:
                read = read or event
            elif isinstance(event, events.Iteration):
                if turn is not None and read is not None:
                    break
                sampler = event.loader.argument("sampler", 3)
                is_share = isinstance(sampler, Object) and sampler.kind == "sampler"
                turn = event if is_share and id(event.loader) not in training.trained_loaders else None
        if turn is not None and read is not None:
            yield read.spot, f"line {turn.spot.line} goes through this rank's share, and nothing adds the shares up"

    yield from certain(trainings, find)


_REDUCES = re.compile(rb"torchmetrics|torcheval|synchronize_between|ignite|accelerat")
