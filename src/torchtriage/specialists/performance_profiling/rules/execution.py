"""What an execution of the program shows about settings that cost time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain
from torchtriage.examine.source.execution.values import Object, is_concrete, truth
from torchtriage.examine.source.torch_api.families import UPLOADS


@detector("source/benchmark-with-deterministic")
def benchmark_with_deterministic(trainings: Trainings) -> Iterator[Sighting]:
    """Both `cudnn.deterministic` and `cudnn.benchmark` are set."""

    def find(training: Training) -> Facts:
        last = {each.name: each for each in training.of(events.Setting)}
        both = [last.get(f"torch.backends.cudnn.{name}") for name in ("benchmark", "deterministic")]
        if all(each is not None and truth(each.value) is True for each in both) and both[0] is not None:
            yield both[0].spot, "deterministic is set, too: which algorithm benchmark chooses differs from run to run"

    yield from certain(trainings, find)


@detector("source/loader-args-invalid")
def loader_args_invalid(trainings: Trainings) -> Iterator[Sighting]:
    """A DataLoader is given arguments that exclude each other."""

    def find(training: Training) -> Facts:
        for made in training.of(events.Made):
            is_asked = made.made.kind == "loader" and not made.is_tried and "**" not in made.made.keywords
            why = _contradiction(made.made) if is_asked else ""
            if why:
                yield made.spot, f"{why}: DataLoader raises ValueError"

    yield from certain(trainings, find, where_reached=True)


def _contradiction(loader: Object) -> str:
    """Which arguments of LOADER exclude each other; "" for none."""
    return _without_workers(loader) or _of_batches(loader) or _of_a_stream(loader)


_NEEDS_WORKERS = (("persistent_workers", False), ("prefetch_factor", None), ("multiprocessing_context", None))


def _without_workers(loader: Object) -> str:
    workers = loader.argument("num_workers", 5, 0)
    if not isinstance(workers, int) or workers != 0:
        return ""
    for name, harmless in _NEEDS_WORKERS:
        value = loader.argument(name, None, harmless)
        if is_concrete(value) and value != harmless:
            return f"{name}={value!r} needs workers, and num_workers is 0"
    return ""


def _of_batches(loader: Object) -> str:
    """What excludes a sampler, a sampler of batches, and loading without batches."""
    shuffles, drops = (truth(loader.argument(*each, False)) is True for each in (("shuffle", 2), ("drop_last", 8)))
    has_sampler = isinstance(loader.argument("sampler", 3), Object)
    size = loader.argument("batch_size", 1, 1)
    if shuffles and has_sampler:
        return "shuffle=True and a sampler exclude each other"
    if size is None and drops:
        return "batch_size=None and drop_last=True exclude each other"
    if not isinstance(loader.argument("batch_sampler", 4), Object):
        return ""
    given = {"batch_size": isinstance(size, int) and size != 1, "shuffle": shuffles, "sampler": has_sampler}
    clash = [name for name, is_given in {**given, "drop_last": drops}.items() if is_given]
    return f"a batch_sampler and {', '.join(clash)} exclude each other" if clash else ""


def _of_a_stream(loader: Object) -> str:
    """An IterableDataset decides its own order."""
    dataset = loader.argument("dataset", 0)
    cls = dataset.cls if isinstance(dataset, Object) else None
    if cls is None or "torch.utils.data.IterableDataset" not in cls.externals:
        return ""
    if truth(loader.argument("shuffle", 2, False)) is True:
        return f"{cls.name} is an IterableDataset, which excludes shuffle=True"
    places = (("sampler", 3), ("batch_sampler", 4))
    found = next((name for name, place in places if isinstance(loader.argument(name, place), Object)), "")
    return f"{cls.name} is an IterableDataset, which excludes a {found}" if found else ""


@detector("source/profiler-without-step")
def profiler_without_step(trainings: Trainings) -> Iterator[Sighting]:
    """A profiler has a schedule, and nothing calls its step()."""

    def find(training: Training) -> Facts:
        stepped = {id(each.handle) for each in training.of(events.Handle) if each.name == "step"}
        for made in training.of(events.Made):
            profiler = made.made
            is_planned = profiler.kind == "profiler" and profiler.argument("schedule", 1) is not None
            if is_planned and id(profiler) not in stepped and not profiler.has_escaped:
                yield made.spot, "it has a schedule, and nothing calls its step(): it stays in its first phase"

    def is_profiled(training: Training) -> bool:
        return any(each.made.kind == "profiler" for each in training.of(events.Made))

    yield from certain(trainings, find, among=is_profiled)


@detector("source/sync-bound")
def sync_bound(trainings: Trainings) -> Iterator[Sighting]:
    """The host waits for the device several times for every batch."""

    def find(training: Training) -> Facts:
        if not training.mentions(_CUDA) or not training.of(events.Iteration):  # one batch holds all data: few steps
            return
        timed = {_home(training, each) for each in training.of(events.LibraryCall) if each.name.startswith("time.")}
        reads = [each for each in training.of(events.Read) if _is_awaited(training, each)]
        waits = [each for each in training.of(events.LibraryCall) if each.name == "torch.cuda.synchronize"]
        waits = [each for each in waits if _home(training, each) not in timed]  # it is meant where a clock is read
        values = {
            id(each.tensor.same_as or each.tensor): each for each in training.every_turn(reads)
        }  # read twice, waited for once
        loops: dict[int, list[events.Event]] = {}
        for each in (*values.values(), *training.every_turn(waits)):
            loops.setdefault(each.loops[-1][0], []).append(each)
        for found in loops.values():
            lines = sorted({each.spot.line for each in found})
            if len({id(each.spot.node) for each in found}) > 1:
                yield found[0].spot, f"every batch waits for the device in lines {', '.join(map(str, lines))}"

    def is_on_device(training: Training) -> bool:
        return any(each.tensor.device != "cpu" for each in training.of(events.Read))

    yield from certain(trainings, find, among=is_on_device)


def _home(training: Training, call: events.LibraryCall) -> tuple[str, int]:
    """The function that CALL stands in."""
    return call.spot.path, max((each.lineno for each in training.definitions_around(call.spot)), default=0)


def _is_awaited(training: Training, read: events.Read) -> bool:
    """Whether the host waits for the device in READ: where that is not known, its function brings something there."""
    tensor = read.tensor
    if tensor.device or not (tensor.graph or tensor.cut):
        return tensor.device == "cuda"
    calls = (
        each for one in training.definitions_around(read.spot) for each in ast.walk(one) if isinstance(each, ast.Call)
    )
    return any(isinstance(each.func, ast.Attribute) and each.func.attr in UPLOADS for each in calls)


_CUDA = re.compile(rb"cuda|accelerator")
