"""What an execution of the program shows about graphs that outlive their step."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.tensors import BEFORE
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, wherever
from torchtriage.examine.source.execution.values import Object, Tensor


@detector("source/graph-retained")
def graph_retained(trainings: Trainings) -> Iterator[Sighting]:
    """A sum over the iterations keeps the graph of each of them."""

    def find(training: Training) -> Facts:
        summed = [each.loss.ages for each in training.of(events.Backward)]
        for kept in training.of(events.Kept):
            is_growing = bool(kept.tensor.graph) and len(kept.tensor.ages - {BEFORE}) > 1
            if is_growing and not any(len(ages & kept.tensor.ages) > 1 for ages in summed):
                name = f"`{kept.name}` " if kept.name else ""
                yield kept.spot, f"{name}holds the graph of every iteration: nothing detaches what is added"

    yield from certain(trainings, find, where_reached=True)


@detector("source/hidden-state-not-detached")
def hidden_state_not_detached(trainings: Trainings) -> Iterator[Sighting]:
    """A state that one iteration hands to the next carries its graph along: backward goes through all of them."""

    def find(training: Training) -> Facts:
        seen: list[frozenset[int]] = []
        states = [each for each in training.of(events.Kept) if isinstance(each.owner, Object) and each.tensor.graph]
        for backward in training.of(events.Backward):
            ages = backward.loss.ages
            # what was computed once before the loop is of no earlier iteration: backward meets it twice, another fault
            old = [before for before in seen if max(before) in ages and max(before) < max(ages)]
            if old and not backward.is_retained:
                state = next(
                    (each for each in states if each.tensor.ages & ages and min(each.tensor.ages) < max(ages)), None
                )
                spot = state.spot if state is not None else backward.spot
                yield spot, f"the loss of line {backward.spot.line} depends on operations of earlier iterations"
            if ages:
                seen.append(ages)

    yield from certain(trainings, find)


@detector("source/eval-builds-graph")
def eval_builds_graph(trainings: Trainings) -> Iterator[Sighting]:
    """A model in evaluation mode records a graph for which no backward comes."""

    def find(training: Training) -> Facts:
        used = {id(forward) for forward, _ in training.backwards}
        users = [*training.of(events.Backward), *training.of(events.GradientCall)]
        loops = {loop for each in users for loop, _ in each.loops}
        for forward in training.of(events.Forward):
            is_apart = forward.loops and forward.loops[-1][0] not in loops
            trains = any(parameter.requires_grad for parameter in training.executor.parameters(forward.model))
            if forward.grad and forward.training is False and id(forward) not in used and is_apart and trains:
                yield forward.spot, "no torch.no_grad() stands around this forward pass in evaluation mode"

    yield from certain(trainings, find, where_reached=True)


@detector("source/tensor-of-tensor")
def tensor_of_tensor(trainings: Trainings) -> Iterator[Sighting]:
    """torch.tensor is given a tensor with a graph: the copy has none."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LibraryCall):
            first = call.arguments[0] if call.arguments else None
            if call.name == "torch.tensor" and isinstance(first, Tensor) and first.graph:
                yield call.spot, "the copy has no graph: no gradient flows back from here"

    yield from certain(trainings, find, where_reached=True)


@detector("source/empty-cache-in-loop")
def empty_cache_in_loop(trainings: Trainings) -> Iterator[Sighting]:
    """The allocator's cache is emptied in every iteration."""

    def find(training: Training) -> Facts:
        trained = {each.loops[-1] for each in training.of(events.Backward) if each.loops}
        calls = [
            each for each in training.of(events.LibraryCall) if each.name == "torch.cuda.empty_cache" and each.loops
        ]
        for call in calls:
            turns = {each.loops[-1] for each in calls if each.spot.node is call.spot.node}
            mine = {turn for turn in trained if turn[0] == call.loops[-1][0]}
            if len(mine) > 1 and mine <= turns:
                yield call.spot, "it runs in every iteration: the allocator asks the driver for all of it again"

    yield from certain(trainings, find)


@detector("source/grown-by-cat")
def grown_by_cat(trainings: Trainings) -> Iterator[Sighting]:
    """A tensor grows by torch.cat for every batch, and all of it is copied each time."""

    def find(training: Training) -> Facts:
        for joined in training.of(events.Joined):
            if joined.loops and joined.loops[-1][0] in training.loader_loops:
                yield joined.spot, "all that was joined before is copied again for every batch"

    yield from certain(trainings, find)


@detector("source/checkpoint-reentrant-unset")
def checkpoint_reentrant_unset(trainings: Trainings) -> Iterator[Sighting]:
    """Activation checkpointing is not told which of its two ways to go."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LibraryCall):
            if call.name.startswith("torch.utils.checkpoint.") and not {"use_reentrant", "**"} & call.keywords.keys():
                yield call.spot, "without use_reentrant it warns, and recomputes in the old way"

    yield from certain(trainings, find, where_reached=True)


@detector("source/retain-graph-needless")
def retain_graph_needless(trainings: Trainings) -> Iterator[Sighting]:
    """The graph is retained in a loop in which nothing goes back through it again."""

    def find(training: Training) -> Facts:
        backwards = training.of(events.Backward)
        if training.of(events.GradientCall) or len({id(each.spot.node) for each in backwards}) != 1:
            return
        for backward in backwards:
            is_own = len(backward.loss.ages) == 1 and not backward.loss.is_open
            is_set = backward.keywords.get("retain_graph") is True and not backward.keywords.get("create_graph")
            if backward.loops and is_own and is_set:
                yield backward.spot, "nothing goes through this graph again, and its activations are kept until then"

    yield from certain(trainings, find)


@detector("source/result-dropped")
def result_dropped(trainings: Trainings) -> Iterator[Sighting]:
    """The result of an operation that leaves its tensor as it is goes nowhere."""
    yield from wherever(trainings, events.Lost, lambda lost: f"{lost.name}() gives a new tensor, and nobody takes it")


@detector("source/created-then-moved")
def created_then_moved(trainings: Trainings) -> Iterator[Sighting]:
    """A tensor is made on the CPU for every batch, and copied to the device."""

    def find(training: Training) -> Facts:
        for copy in training.every_turn(training.of(events.Copy)):
            if copy.tensor.created in _FILLED:
                yield (
                    copy.spot,
                    f"torch.{copy.tensor.created} takes `device=`: nothing has to be copied for every batch",
                )

    yield from certain(trainings, find)


_FILLED = frozenset({"zeros", "ones", "full"})
