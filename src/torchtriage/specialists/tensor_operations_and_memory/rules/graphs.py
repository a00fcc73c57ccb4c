"""What an execution of the program shows about graphs that outlive their step."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Set

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import GraphNode, Parameter, Tensor
from torchtriage.examine.source.execution.binding import ANY_KEY
from torchtriage.examine.source.execution.graphs import BEFORE, tensors_in
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import PARTLY, Facts, Trainings, certain, shown
from torchtriage.examine.source.execution.values import Object, Spot, truth
from torchtriage.examine.source.torch_api.families import DEVICE_MOVES
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.tensor_operations_and_memory.rules.mends import (
    decorate_with_no_grad,
    names_evaluation,
    take_result,
)


@detector("source/graph-retained")
def graph_retained(trainings: Trainings) -> Iterator[Sighting]:
    """A sum or a list over the iterations keeps the graph of each of them."""

    def find(training: Training) -> Facts:
        losses = [each.loss for each in training.of(events.Backward)]
        summed = [each.ages for each in losses]
        propagated = {each.grad_fn for each in losses} - {None}
        for kept in training.of(events.Kept):
            ages = _ages(kept, propagated) - {BEFORE}
            if kept.tensor.is_assumed or _is_bounded(training, kept) or not _grows(training, kept):
                continue
            if len(ages) > 1 and not any(len(mine & ages) > 1 for mine in summed):
                name = f"`{kept.name}`" if kept.name else "what is kept"
                spots = [each.spot for each in training.of(events.Backward) if each.loops[:1] == kept.loops[:1]]
                yield (
                    kept.spot.apart_from(spots[0]) if spots else kept.spot,
                    f"{name} holds the graph of every iteration: nothing detaches what is added",
                )

    yield from certain(trainings, find, where_reached=True)


def _grows(training: Training, kept: events.Kept) -> bool:
    """Whether what is kept at the place of KEPT has the graphs of its earlier iterations, too; of containers that is
    seen by what they hold. `fake = fake.view(…)` behind the loop that makes it begins anew each time.
    """
    if isinstance(kept.spot.node, ast.ListComp):  # [train_step(x) for x in loader]
        return True
    if isinstance(kept.owner, list | dict):  # one that is made anew for each step, to be joined, goes with it
        trained = {loop for each in training.of(events.Backward) for loop, _ in each.loops}
        held = (each for each in training.of(events.Kept) if each.owner is kept.owner)
        return len({tuple(turn for turn in each.loops if turn[0] in trained) for each in held}) > 1
    ages = [each.tensor.ages for each in training.of(events.Kept) if each.spot.node is kept.spot.node]
    return any(first < second for first, second in itertools.pairwise(ages))


def _is_bounded(training: Training, kept: events.Kept) -> bool:
    """Whether the container of KEPT gives old elements away, or has as many places as it has."""
    if not isinstance(kept.owner, list | dict):
        return False
    node = kept.spot.node
    is_sum = len(kept.tensor.ages - {BEFORE}) > 1
    if isinstance(kept.owner, dict) and ANY_KEY not in kept.owner and not is_sum:  # latest[name] = h: one for each name
        puts = {(id(each.spot.node), each.loops) for each in training.of(events.Kept) if each.owner is kept.owner}
        if len(puts) > len(kept.owner):
            return True
    if isinstance(node, ast.Subscript):
        return isinstance(kept.owner, list) or any(isinstance(each, ast.Mod) for each in ast.walk(node.slice))
    held = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    name = re.escape(ast.unparse(held).encode()) if held is not None else b""
    given_away = rb"\b%s\.(pop|popleft|clear|remove)\b|del %s\b|\b%s\s*=\s*%s\[" % (name, name, name, name)
    return bool(name) and training.mentions(re.compile(given_away))


def _ages(kept: events.Kept, propagated: Set[GraphNode | None]) -> frozenset[int]:
    """Of which iterations the graphs are that KEPT holds, or its container at the end, whichever are more.

    PROPAGATED: the operations that backward has begun with: what they gave has a graph, known or not.
    """
    inside = [*tensors_in((kept.owner,))] if isinstance(kept.owner, list | dict) else []
    held = ([each.ages for each in one if each.graph or each.grad_fn in propagated] for one in ([kept.tensor], inside))
    return max((frozenset[int]().union(*ages) for ages in held), key=len)


@detector("source/hidden-state-not-detached")
def hidden_state_not_detached(trainings: Trainings) -> Iterator[Sighting]:
    """A state that one iteration hands to the next carries its graph along: backward goes through all of them."""

    def find(training: Training) -> Facts:
        seen: list[Tensor] = []
        for backward in training.of(events.Backward):
            ages = backward.loss.ages
            # what was computed once before the loop is of no earlier iteration: backward meets it twice, another fault
            old = [before.ages for before in seen if max(before.ages) in ages and max(before.ages) < max(ages)]
            # each of the steps of an episode has a graph of its own, whenever it was computed
            shared = [each for each in seen if not each.operations.isdisjoint(backward.loss.operations)]
            if old and shared and not backward.is_retained:
                yield (
                    _taken_over(training, backward),
                    f"the loss of {backward.spot} depends on operations of earlier iterations",
                )
            if ages:
                seen.append(backward.loss)

    yield from certain(trainings, find)


def _taken_over(training: Training, backward: events.Backward) -> Spot:
    """Where the graph of BACKWARD takes over a state of earlier iterations: the model gets it, or keeps it."""
    ages, before = backward.loss.ages, training.events_before(backward)
    for forward in before:
        is_of_same_turn = forward.loops[: len(backward.loops)] == backward.loops
        if isinstance(forward, events.Forward) and is_of_same_turn:
            given = forward.ages - {BEFORE}
            if given and given <= ages and max(given) < max(ages):
                return forward.spot.apart_from(backward.spot)
    for kept in before:
        if isinstance(kept, events.Kept) and isinstance(kept.owner, Object) and kept.tensor.graph:
            old = kept.tensor.ages
            if old & ages and min(old) < max(ages):
                return kept.spot
    return backward.spot


@detector("source/eval-builds-graph")
def eval_builds_graph(trainings: Trainings) -> Iterator[Sighting]:
    """A model in evaluation mode records a graph for which no backward comes."""
    guarded = {
        _evaluated(run, each).key
        for run in trainings.runs
        for each in run.of(events.Forward)
        if not each.grad and each.loops
    }

    def find(training: Training) -> Facts:
        if training.executor.takes in PARTLY or training.executor.is_called_by_base:
            return
        if any(each.name == "numpy" and each.tensor.graph for each in training.of(events.Read)):
            return  # it would raise: somebody has switched gradients off
        for forward in _left_over(training):
            if _is_returned(training, forward):
                continue
            spot = _evaluated(training, forward)
            if spot.key not in guarded:
                yield (
                    spot,
                    "it keeps the activations of every layer for a backward that never comes: gradients are on here",
                    decorate_with_no_grad,
                )

    yield from shown(trainings, find)


def _is_returned(training: Training, forward: events.Forward) -> bool:
    """Whether the caller, who is not in sight, gets the graph of FORWARD, and may go backward through it: the loss over
    a whole set of meta-learning. What is called evaluate() only shows its loss.
    """
    entry, around = training.executor.entry, training.definitions_around(forward.spot)
    if entry is None or any(map(names_evaluation, (entry.name, *(each.name for each in around)))):
        return False
    held = frozenset[Parameter]().union(*(each.graph for each in tensors_in((training.executor.returned,))))
    return any(held & {*training.executor.own_parameters(each).values()} for each in forward.called)


def _left_over(training: Training) -> Iterator[events.Forward]:
    """Forward passes of an evaluation that record a graph."""
    used = {id(forward): forward for forward, _ in training.backwards}
    models = {id(bare(each.model)) for each in used.values()}
    nodes = {id(each.spot.node) for each in used.values()}
    users = [*training.of(events.Backward), *training.of(events.GradientCall)]
    trained = {each for user in users for each in _passes(user)}
    for forward in training.of(events.Forward):
        if id(forward) in used or not forward.grad or not forward.loops:
            continue
        if "backward" in training.blind and forward.training is not False:
            continue  # accelerator.backward(loss), of an object that is not known
        if _is_adapted(training, forward):
            continue
        is_apart = (forward.loops[:-1], forward.loops[-1][0]) not in trained
        if forward.training is False:
            is_evaluation = is_apart or id(bare(forward.model)) in models
        else:  # for phase in ("train", "val"), without eval()
            is_untrained = id(bare(forward.model)) in models and training.is_evaluation(forward)
            is_evaluation = is_apart and (id(forward.spot.node) in nodes or is_untrained)
        if is_evaluation and any(each.requires_grad for each in training.executor.parameters(forward.model)):
            yield forward


def _is_adapted(training: Training, forward: events.Forward) -> bool:
    """Whether gradients are asked for after FORWARD in the same iteration: an inner step of meta-learning, which its
    evaluation takes, too.
    """
    calls = [each for each in training.events_after(forward) if isinstance(each, events.GradientCall)]
    return any(each.loops and each.loops == forward.loops[: len(each.loops)] for each in calls)


def _evaluated(training: Training, forward: events.Forward) -> Spot:
    """Where FORWARD is asked for: of a step that training and validation share, or that is a method of the model, the
    call in the loop over batches.
    """
    is_shared = any(each.spot.node is forward.spot.node for each, _ in training.backwards)
    is_in_pass = any(loop in training.loader_loops for loop, _ in forward.loops)
    classes = [each for each in training.definitions_around(forward.spot) if isinstance(each, ast.ClassDef)]
    models = [each for each in classes if any(ast.unparse(base).endswith("Module") for base in each.bases)]
    is_asked_for = is_shared or is_in_pass or bool(models)
    return training.in_loop(forward, outside=models[:1]) if is_asked_for else forward.spot


def _passes(event: events.Event) -> Iterator[tuple[tuple[tuple[int, int], ...], int]]:
    """Each loop around EVENT, with the iterations around that: one pass over the data."""
    return ((event.loops[:depth], loop) for depth, (loop, _) in enumerate(event.loops))


@detector("source/tensor-of-tensor")
def tensor_of_tensor(trainings: Trainings) -> Iterator[Sighting]:
    """torch.tensor is given a tensor with a graph: the copy has none."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LibraryCall):
            first = call.arguments[0] if call.arguments else None
            is_leaf = truth(call.keywords.get("requires_grad", False)) is True  # a loss that has lost its graph
            if call.name == "torch.tensor" and isinstance(first, Tensor) and first.graph and not is_leaf:
                yield call.spot, "the copy has no graph: no gradient flows back from here"

    yield from certain(trainings, find, where_reached=True)


@detector("source/empty-cache-in-loop")
def empty_cache_in_loop(trainings: Trainings) -> Iterator[Sighting]:
    """The allocator's cache is emptied in every iteration."""

    def find(training: Training) -> Facts:
        if training.mentions(_GENERATES):
            return
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


_GENERATES = re.compile(rb"\.generate\(")
"""Between rollouts and training the allocator needs other blocks."""


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
            if call.name.startswith("torch.utils.checkpoint.") and call.keywords.keys() <= symbols().checkpoint_options:
                yield call.spot, "without use_reentrant it warns, and recomputes in the old way"

    yield from certain(trainings, find, where_reached=True)


@detector("source/retain-graph-needless")
def retain_graph_needless(trainings: Trainings) -> Iterator[Sighting]:
    """The graph is retained in a loop in which nothing goes back through it again."""

    def find(training: Training) -> Facts:
        retained = [each for each in training.of(events.Backward) if _is_retained(each)]
        shared = {id(each.spot.node) for each in retained if _is_used_again(training, each)}
        for backward in retained:
            if id(backward.spot.node) not in shared:
                yield backward.spot, "nothing goes back through this graph again, and its activations stay in memory"

    yield from certain(trainings, find)


def _is_retained(backward: events.Backward) -> bool:
    """Whether BACKWARD, one of a loop, keeps a graph that is known."""
    is_set = backward.keywords.get("retain_graph") is True and not backward.keywords.get("create_graph")
    return is_set and bool(backward.loops) and not backward.loss.has_escaped and bool(backward.loss.operations)


def _is_used_again(training: Training, backward: events.Backward) -> bool:
    """Whether a later pass goes through operations of the graph of BACKWARD."""
    mine = backward.loss.operations
    later = training.events_after(backward)
    again = [each.loss for each in later if isinstance(each, events.Backward)]
    again += [one for each in later if isinstance(each, events.GradientCall) for one in tensors_in((each.outputs,))]
    first, escaped = len(training.executor.events) - len(later), training.executor.escaped
    is_handed_on = any(escaped.get(each, -1) >= first for each in mine)  # self.critic.push(fake), that is not in sight
    return is_handed_on or any(not mine.isdisjoint(each.operations) for each in again)


@detector("source/result-dropped")
def result_dropped(trainings: Trainings) -> Iterator[Sighting]:
    """The result of an operation that leaves its tensor as it is goes nowhere."""

    def find(training: Training) -> Facts:
        for lost in training.of(events.Lost):
            is_there = isinstance(lost.tensor, Tensor) and lost.tensor.device == "cuda"  # it gives the same tensor
            is_trial = (lost.is_tried or is_there) and lost.name in DEVICE_MOVES  # whether there is a device
            fact = f"`{lost.name}()` returns a new tensor, which is discarded: the old one stays in use"
            if lost.is_used and not is_trial and isinstance(lost.tensor, Parameter):  # it stays the same leaf
                yield lost.spot, fact
            elif lost.is_used and not is_trial:
                yield lost.spot, fact, take_result

    yield from certain(trainings, find, where_reached=True)
