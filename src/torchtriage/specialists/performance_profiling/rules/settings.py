"""What an execution of the program shows about settings that cost time."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, by_default, certain, shown
from torchtriage.examine.source.execution.values import External, Object, Spot, is_concrete, truth
from torchtriage.examine.source.nodes import names_in


@detector("source/benchmark-with-deterministic")
def benchmark_with_deterministic(trainings: Trainings) -> Iterator[Sighting]:
    """Both `cudnn.deterministic` and `cudnn.benchmark` are set."""

    def find(training: Training) -> Facts:
        settings = training.of(events.Setting)
        for process in dict.fromkeys(each.spot.process for each in settings):  # mp.spawn: each has its own
            last = {each.name: each for each in settings if each.spot.process == process}
            both = [last.get(f"torch.backends.cudnn.{name}") for name in ("benchmark", "deterministic")]
            if all(map(_is_on, both)) and both[0] is not None:
                why = "deterministic is set, too: which algorithm benchmark chooses differs from run to run"
                yield both[0].spot, why

        for call in training.of(events.LibraryCall):
            if call.name == _FLAGS and all(truth(call.keywords.get(each, False)) is True for each in _BOTH):
                yield call.spot, "deterministic is set, too: which algorithm benchmark chooses differs from run to run"

    # one of them may depend on an option: `if args.seed is not None: cudnn.deterministic = True`
    names = [{each.name for each in run.of(events.Setting) if _is_on(each)} for run in trainings.runs]
    has_flags = any(each.name == _FLAGS for run in trainings.runs for each in run.of(events.LibraryCall))
    if has_flags or (names and set.intersection(*names) & _OF_CUDNN):
        yield from shown(trainings, find)


_FLAGS, _BOTH = "torch.backends.cudnn.flags", ("benchmark", "deterministic")
_OF_CUDNN = frozenset({"torch.backends.cudnn.benchmark", "torch.backends.cudnn.deterministic"})


def _is_on(setting: events.Setting | None) -> bool:
    if setting is None or isinstance(setting.value, External):  # what it was before is put back
        return False
    return truth(setting.value) is True


@detector("source/loader-args-invalid")
def loader_args_invalid(trainings: Trainings) -> Iterator[Sighting]:
    """A DataLoader is given arguments that exclude each other."""

    def find(training: Training) -> Facts:
        for made in training.of(events.Made):
            is_asked = made.made.kind == "loader" and not made.is_tried and "**" not in made.made.keywords
            if training.executor.entry is not None:  # a configuration that is not in sight may say otherwise
                is_asked = is_asked and not _is_configured(training, made.spot)
            why = _contradiction(made.made) if is_asked else ""
            if why:
                yield made.spot, f"{why}: DataLoader raises ValueError"

    yield from by_default(trainings, find)


def _is_configured(training: Training, spot: Spot) -> bool:
    """Whether the call at SPOT takes settings from what its function is given: self.cfg.workers, cfg["workers"]."""
    around = training.code_around(spot)
    wanted = around.args if isinstance(around, ast.FunctionDef) else ast.arguments([], [], None, [], [], None, [])
    given = {each.arg for each in (*wanted.posonlyargs, *wanted.args, *wanted.kwonlyargs)}
    values = (each.value for each in getattr(spot.node, "keywords", ()) if each.arg in _SET)
    deep = (each for each in values if isinstance(each, ast.Attribute | ast.Subscript))
    return any(not given.isdisjoint(names_in(each)) for each in deep)


_SET = frozenset({"num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context"})


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


_STEPPED = re.compile(rb"prof\w*([\"']\])?\.step\(")
"""What steps a profiler somewhere else: in a function that is put in the place of a trainer's own."""


@detector("source/profiler-without-step")
def profiler_without_step(trainings: Trainings) -> Iterator[Sighting]:
    """A profiler has a schedule, and nothing calls its step()."""

    def find(training: Training) -> Facts:
        if training.mentions(_STEPPED):
            return
        stepped = {id(each.handle) for each in training.of(events.Handle) if each.name == "step"}
        for made in training.of(events.Made):
            profiler = made.made
            is_planned = profiler.kind == "profiler" and profiler.argument("schedule", 1) is not None
            if is_planned and id(profiler) not in stepped and not profiler.has_escaped:
                yield made.spot, "it has a schedule, and nothing calls its step(): it stays in its first phase"

    def is_profiled(training: Training) -> bool:
        return any(each.made.kind == "profiler" for each in training.of(events.Made))

    yield from certain(trainings, find, among=is_profiled)
