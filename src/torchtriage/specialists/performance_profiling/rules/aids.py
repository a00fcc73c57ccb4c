"""What an execution of the program shows about debugging aids that stay on while a model is trained."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain
from torchtriage.examine.source.execution.values import Object, truth
from torchtriage.examine.source.nodes import nodes_in
from torchtriage.examine.source.torch_api.symbols import symbols

_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_PURPOSE = ("profil", "bench", "trace", "debug", "perf")
_ENTERED, _LEFT = frozenset({"start", "__enter__"}), frozenset({"stop", "__exit__"})
FEW = 5
"""Iterations of a loop that is run to be looked at."""


@detector("source/debug-left-on")
def debug_left_on(trainings: Trainings) -> Iterator[Sighting]:
    """A debugging aid that slows every step is switched on for the whole training."""

    def find(training: Training) -> Facts:
        if training.of(events.Backward):
            yield from _anomaly(training)
            yield from _around(training)
            yield from _blocking(training)

    yield from certain(trainings, find)


def _anomaly(training: Training) -> Facts:
    """Anomaly detection that is set for good."""
    calls = [each for each in _all(training) if isinstance(each, events.LibraryCall)]
    calls = [each for each in calls if each.name in symbols().anomaly_setters]
    modes = [truth(each.arguments[0] if each.arguments else each.keywords.get("mode", True)) for each in calls]
    if False in modes:
        return
    entered = {id(each.handle.spot.node) for each in training.of(events.Handle) if each.handle.spot is not None}
    for call, mode in zip(calls, modes, strict=True):
        if mode is True and not call.loops and id(call.spot.node) not in entered:
            fact = "anomaly detection is on for the whole training: it records a stack for every operation"
            yield call.spot, fact


def _around(training: Training) -> Facts:
    """Anomaly detection and profilers around steps."""
    entered: dict[int, events.Handle] = {}
    told: set[int] = set()
    for event in training.executor.events:
        if isinstance(event, events.Handle) and event.name in _ENTERED:
            entered[id(event.handle)] = event
        elif isinstance(event, events.Handle) and event.name in _LEFT:
            entered.pop(id(event.handle), None)
        elif isinstance(event, events.Backward):
            for key, each in entered.items():
                fact = _fact(training, each, event) if key not in told else ""
                if fact and each.handle.spot is not None:
                    told.add(key)
                    yield each.handle.spot, fact


def _fact(training: Training, entered: events.Handle, backward: events.Backward) -> str:
    """What is wrong with the aid that is ENTERED around BACKWARD; "" for nothing."""
    aid = entered.handle
    if aid.kind == "anomaly":
        is_every = len(backward.loops) > 0 and aid.state["is_on"] is True
        return "anomaly detection is on in every step: it records a stack for every operation" if is_every else ""
    inside = backward.loops[len(entered.loops) :]
    if aid.kind != "profiler" or len(inside) < 2 or _is_limited(aid) or _is_purpose(training, entered):
        return ""
    if any(_is_short(training, loop) for loop, _ in inside):
        return ""
    return "the profiler records every operation of the whole training, all epochs of it"


def _is_limited(profiler: Object) -> bool:
    """Whether PROFILER records on a schedule, or when it is asked to."""
    schedule = profiler.argument("schedule", 1 if profiler.made.startswith("torch.profiler") else None)
    return schedule is not None or "enabled" in profiler.keywords or "**" in profiler.keywords


def _is_purpose(training: Training, entered: events.Handle) -> bool:
    """Whether the function that opens the profiler says by its name that it measures."""
    spot = entered.handle.spot or entered.spot
    return any(word in each.name.lower() for each in training.definitions_around(spot)[-1:] for word in _PURPOSE)


def _is_short(training: Training, loop: int) -> bool:
    """Over a few iterations, or left early by a break."""
    if not training.executor.endless.get(loop) and training.executor.totals.get(loop, 0) <= FEW:
        return True
    node = training.executor.loop_nodes[loop]
    match node:
        case ast.For(iter=ast.Subscript(slice=ast.Slice())):  # of batches[:10]
            return True
        case ast.For(iter=ast.Call(func=ast.Name(id="islice") | ast.Attribute(attr="islice"))):
            return True
    return any(isinstance(each, ast.Break) for each in ast.walk(node))


def _blocking(training: Training) -> Facts:
    """Where the program makes the host wait for each kernel."""
    for event in _all(training):
        if isinstance(event, events.Setting) and event.name == f"os.environ.{_BLOCKING}" and event.value == "1":
            yield event.spot, f"{_BLOCKING}=1 makes the host wait for each kernel"


def _all(training: Training) -> Iterator[events.Event]:
    """What happens, and what has happened at the top level of the file, whatever that asks for."""
    if training.executor.earlier:
        simple = (each for each in training.script.tree.body if isinstance(each, ast.Expr | ast.Assign | ast.AugAssign))
        nodes = frozenset().union(*map(nodes_in, simple))
        yield from (each for each in training.executor.earlier if id(each.spot.node) in nodes)
    yield from training.executor.events
