"""What an execution of the program shows about samplers, and what each rank sees of the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain, shown
from torchtriage.examine.source.execution.values import Object, Unknown, Value, truth

SHARDED = "torch.distributed.fsdp.FullyShardedDataParallel"


@detector("source/sampler-epoch-not-set")
def sampler_epoch_not_set(trainings: Trainings) -> Iterator[Sighting]:
    """A second epoch of training begins, and the sampler was not told: its order is that of the first."""

    def find(training: Training) -> Facts:
        if "set_epoch" in training.blind:
            return
        trained = {loop for each in training.of(events.Backward) for loop, _ in each.loops}
        begun: dict[int, int] = {}
        told: set[int] = set()
        turns = _turns_of_training(training)
        for event in training.executor.events:
            if isinstance(event, events.SetEpoch):
                told.add(id(event.sampler))
            elif isinstance(event, events.Iteration) and (id(event) in turns or _is_asked(event, trained)):
                sampler = _sampler(event.loader)
                if sampler is None or sampler.has_escaped:
                    continue
                shuffles = truth(sampler.argument("shuffle", 3, True)) is True
                begun[id(sampler)] = begun.get(id(sampler), 0) + 1
                if begun[id(sampler)] > 1 and id(sampler) not in told and shuffles and sampler.spot is not None:
                    yield sampler.spot, f"the loop of {event.spot} begins again, and nothing calls set_epoch"

    yield from certain(trainings, find, where_reached=True)  # some of them may sample without one


def _sampler(loader: Object) -> Object | None:
    """The sampler by which LOADER gives each rank its share, also one that a sampler of batches asks."""
    batches = loader.argument("batch_sampler", 4)
    given = batches.argument("sampler", 0) if isinstance(batches, Object) else loader.argument("sampler", 3)
    return given if isinstance(given, Object) and given.kind == "sampler" else None


def _turns_of_training(training: Training) -> set[int]:
    """The epochs whose own batches are gone back from: one loop may train on a loader and evaluate on another."""
    found: set[int] = set()
    under: dict[int, events.Iteration] = {}
    for event in training.executor.events:
        if isinstance(event, events.Iteration) and event.loops:
            under[event.loops[-1][0]] = event
        elif isinstance(event, events.Backward):
            found |= {id(under[loop]) for loop, _ in event.loops if loop in under}
    return found


def _is_asked(turn: events.Iteration, trained: set[int]) -> bool:
    """Whether a loop that trains asks a generator for batches of the epoch TURN."""
    return turn.is_cycled and any(loop in trained for loop, _ in turn.loops)


@detector("source/same-data-on-ranks")
def same_data_on_ranks(trainings: Trainings) -> Iterator[Sighting]:
    """A model on every rank is trained on a loader that gives all of them the same samples."""

    def find(training: Training) -> Facts:
        wrapped = {id(each) for each in _on_ranks(training)}
        loops = {each.loops[-1][0] for each, _ in training.backwards if each.loops and id(each.model) in wrapped}
        seeds = (each for each in training.of(events.LibraryCall) if "seed" in each.name)
        if training.mentions(_SHARDS) or any(differs_by_rank(one) for each in seeds for one in each.arguments):
            return
        for turn in training.of(events.Iteration):
            loader = turn.loader
            given = {"sampler", "batch_sampler", "**"} & loader.keywords.keys()
            is_whole = (
                not (loader.has_escaped or loader.state.get("is_given"))
                and len(loader.arguments) < 4
                and not any(loader.keywords[each] is not None for each in given)
            )
            if (
                turn.loops
                and turn.loops[-1][0] in loops
                and is_whole
                and loader.spot
                and not differs_by_rank(loader)
                and not _is_stream(loader)
            ):
                yield loader.spot, "no DistributedSampler is here: every rank goes through all samples"
            sampler = _sampler(loader)
            if turn.loops and turn.loops[-1][0] in loops and sampler is not None and sampler.spot is not None:
                count = sampler.argument("num_replicas", 1)
                if isinstance(count, int) and not isinstance(count, bool) and count == 1:
                    yield sampler.spot, "num_replicas is 1 here: every rank goes through all samples"

    yield from certain(trainings, find)


def _on_ranks(training: Training) -> list[Object]:
    """The models that every rank has, whole or in part."""
    shards = [each.made.state["module"] for each in training.of(events.Made) if each.made.kind == "shard"]
    flat = [each for each in training.executor.wrappers if each.made == SHARDED]
    return [*training.replicas, *flat, *shards]


_SHARDS = re.compile(rb"split_dataset_by_node|\.shard\(|num_shards|webdataset|rank::|get_worker_info")


def _is_stream(loader: Object) -> bool:
    """Whether LOADER reads a dataset that takes no sampler."""
    dataset = loader.argument("dataset", 0)
    cls = dataset.cls if isinstance(dataset, Object) else None
    return cls is not None and "torch.utils.data.IterableDataset" in cls.externals


def differs_by_rank(value: Value, deep: int = 0) -> bool:
    """Whether VALUE was made of something that differs among the ranks."""
    if isinstance(value, Unknown):
        return value.is_of_rank
    if isinstance(value, Object) and deep < 3:
        inside = (*value.arguments, *value.keywords.values(), *value.values.values())
        return value.has_escaped or any(differs_by_rank(each, deep + 1) for each in inside)
    return isinstance(value, list | tuple) and any(differs_by_rank(each, deep + 1) for each in value[:20])


@detector("source/metrics-not-reduced")
def metrics_not_reduced(trainings: Trainings) -> Iterator[Sighting]:
    """A figure that each rank counts over its own share is reported as that of the whole set."""
    found = [_figures(run) for run in trainings.runs if not run.mentions(_REDUCES)]
    added = {id(summed.spot.node) for figures in found for _, summed, averaged in figures if averaged is None}

    def find(training: Training) -> Facts:
        for turn, summed, averaged in _figures(training) if found else ():
            if averaged is not None and id(summed.spot.node) not in added:
                sampler = turn.loader.argument("sampler", 3)
                yield (
                    summed.spot.apart_from(turn.spot),
                    f"the sampler of {sampler.spot} gives this rank its share only, and no rank adds the "
                    f"others' figures before {averaged.spot} makes one of them",
                )

    yield from shown(trainings, find, throughout=True)  # the figure may be made where the first rank prints it


def _figures(training: Training) -> list[tuple[events.Iteration, events.Summed, events.Averaged | None]]:
    """Where figures of this rank's share are added up, and made one of; None where a collective adds the shares."""
    found: list[tuple[events.Iteration, events.Summed, events.Averaged | None]] = []
    turn: events.Iteration | None = None
    summed: events.Summed | None = None
    for event in training.executor.events:
        if isinstance(event, events.Iteration):
            turn, summed = event, None
        elif turn is None:
            continue
        elif isinstance(event, events.Summed) and event.loader is turn.loader and _is_within(event, turn):
            summed = summed or event
        elif summed is not None and isinstance(event, events.Collective) and event.name in _ADDS:
            found.append((turn, summed, None))
        elif summed is not None and isinstance(event, events.Averaged) and not _is_within(event, turn):
            found.append((turn, summed, event))
    return found


def _is_within(event: events.Event, turn: events.Iteration) -> bool:
    """Whether EVENT happens in the loop that TURN begins."""
    depth = len(turn.loops)
    if isinstance(event.spot.node, ast.ListComp) and turn.spot.node in event.spot.node.generators:
        return True
    return 0 < depth <= len(event.loops) and event.loops[depth - 1][0] == turn.loops[-1][0]


_ADDS = frozenset(
    {"all_reduce", "reduce", "gather", "all_gather", "all_gather_object", "gather_object", "all_gather_into_tensor"}
)
_REDUCES = re.compile(rb"torchmetrics|torcheval|synchronize_between|ignite|accelerat|import evaluate")
