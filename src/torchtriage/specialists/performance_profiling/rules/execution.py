"""What an execution of the program shows about settings that cost time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain
from torchtriage.examine.source.execution.values import Object, truth


@detector("source/debug-left-on")
def debug_left_on(trainings: Trainings) -> Iterator[Sighting]:
    """Anomaly detection is on for the whole training."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LibraryCall):
            mode = call.arguments[0] if call.arguments else call.keywords.get("mode", True)
            if call.name == "torch.autograd.set_detect_anomaly" and not call.loops and truth(mode) is True:
                yield call.spot, "every backward pass checks every operation for NaN"

    yield from certain(trainings, find)


@detector("source/benchmark-with-deterministic")
def benchmark_with_deterministic(trainings: Trainings) -> Iterator[Sighting]:
    """Both `cudnn.deterministic` and `cudnn.benchmark` are set."""

    def find(training: Training) -> Facts:
        last = {each.name: each for each in training.of(events.Setting)}
        both = [last.get(f"torch.backends.cudnn.{name}") for name in ("benchmark", "deterministic")]
        if all(each is not None and truth(each.value) is True for each in both) and both[0] is not None:
            yield both[0].spot, "deterministic is set, too: which algorithm benchmark chooses differs from run to run"

    yield from certain(trainings, find)


@detector("source/built-in-loop")
def built_in_loop(trainings: Trainings) -> Iterator[Sighting]:
    """An optimizer, a wrapper or a loader is built for every batch."""

    def find(training: Training) -> Facts:
        for made in training.every_turn(training.of(events.Made)):
            if made.made.kind in ("optimizer", "wrapper", "loader", "scheduler", "scaler"):
                yield made.spot, f"{made.made.made.rpartition('.')[2]} is built anew for every batch"

    yield from certain(trainings, find)


@detector("source/loader-args-invalid")
def loader_args_invalid(trainings: Trainings) -> Iterator[Sighting]:
    """A DataLoader is given arguments that exclude each other."""

    def find(training: Training) -> Facts:
        for made in training.of(events.Made):
            why = _contradiction(made.made) if made.made.kind == "loader" else ""
            if why:
                yield made.spot, f"{why}: DataLoader raises ValueError"

    yield from certain(trainings, find, where_reached=True)


def _contradiction(loader: Object) -> str:
    """Which arguments of LOADER exclude each other; "" for none."""
    shuffles = truth(loader.argument("shuffle", 2, False)) is True
    sampler, batches = loader.argument("sampler", 3), loader.argument("batch_sampler", 4)
    workers = loader.argument("num_workers", 5, 0)
    if shuffles and isinstance(sampler, Object):
        return "a sampler decides the order, and shuffle=True would"
    size = loader.argument("batch_size", 1, 1)
    is_sized = isinstance(size, int) and size != 1
    if isinstance(batches, Object) and (is_sized or shuffles or isinstance(sampler, Object)):
        return "batch_sampler excludes batch_size, shuffle and sampler"
    if workers == 0 and isinstance(workers, int):
        if isinstance(loader.argument("prefetch_factor"), int):
            return "prefetch_factor is given without workers"
        if truth(loader.argument("persistent_workers", None, False)) is True:
            return "persistent_workers=True is given without workers"
    return ""


@detector("source/profiler-without-step")
def profiler_without_step(trainings: Trainings) -> Iterator[Sighting]:
    """A profiler has a schedule, and nothing calls its step()."""

    def find(training: Training) -> Facts:
        stepped = {id(each.handle) for each in training.of(events.Handle)}
        for made in training.of(events.Made):
            profiler = made.made
            is_planned = profiler.kind == "profiler" and profiler.argument("schedule", 1) is not None
            if is_planned and id(profiler) not in stepped and not profiler.has_escaped:
                yield made.spot, "it has a schedule, and nothing calls its step(): it stays in its first phase"

    yield from certain(trainings, find)


@detector("source/sync-bound")
def sync_bound(trainings: Trainings) -> Iterator[Sighting]:
    """The host waits for the device several times for every batch."""

    def find(training: Training) -> Facts:
        if not training.mentions(_CUDA) or not training.of(events.Iteration):  # one batch holds all data: few steps
            return
        reads = [each for each in training.of(events.Read) if each.tensor.graph or each.tensor.cut]
        waits = [each for each in training.of(events.LibraryCall) if each.name == "torch.cuda.synchronize"]
        values = {id(each.tensor): each for each in training.every_turn(reads)}  # read twice, waited for once
        found = [*values.values(), *training.every_turn(waits)]
        if len(found) > 1:
            lines = sorted({each.spot.line for each in found})
            yield found[0].spot, f"every batch waits for the device in lines {', '.join(map(str, lines))}"

    yield from certain(trainings, find)


_CUDA = re.compile(rb"cuda|accelerator")
