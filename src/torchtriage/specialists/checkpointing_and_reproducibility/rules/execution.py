"""What an execution of the program shows about states that are kept, saved and taken over again."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.modules import bare
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, shown
from torchtriage.examine.source.execution.values import (
    Class,
    Function,
    Loaded,
    Object,
    Operation,
    Spot,
    Tensor,
    Unknown,
    Value,
    truth,
)


@detector("source/best-state-aliased")
def best_state_aliased(trainings: Trainings) -> Iterator[Sighting]:
    """A state that is taken over later is kept by reference: the steps in between have changed it."""

    def find(training: Training) -> Facts:
        for restore in training.of(events.Restore):
            state = _shared(restore.state)
            if state is not None and state.state["of"] is restore.part:
                after = training.executor.events[state.state["at"] :]
                steps = [each for each in after if isinstance(each, events.OptimizerStep)]
                if steps and state.spot is not None and after.index(steps[0]) < after.index(restore):
                    yield (
                        state.spot,
                        f"line {restore.spot.line} takes it over when the steps in between have changed it",
                    )

    yield from shown(trainings, find)


def _shared(value: Value) -> Object | None:
    """The state whose memory VALUE shares: it itself, or a dict of its entries."""
    if isinstance(value, Object) and value.kind == "state":
        return value
    entries = value.values() if isinstance(value, dict) else ()
    states = [each.state if isinstance(each, Tensor) else None for each in entries]
    return states[0] if states and all(each is states[0] for each in states) else None


@detector("source/whole-object-saved")
def whole_object_saved(trainings: Trainings) -> Iterator[Sighting]:
    """torch.save is given a module or an optimizer itself."""

    def find(training: Training) -> Facts:
        for save in training.of(events.Save):
            whole = [each for each in _parts(save.saved) if isinstance(each, Object) and each.kind in _WHOLE]
            if whole:
                yield save.spot, f"a {whole[0].kind} is pickled with its class, and needs the same code to be loaded"

    yield from certain(trainings, find, where_reached=True)


_WHOLE = frozenset({"module", "wrapper", "optimizer", "scheduler", "scaler"})


@detector("source/state-dict-not-called")
def state_dict_not_called(trainings: Trainings) -> Iterator[Sighting]:
    """The method state_dict itself is saved, or a path is given where a state belongs."""

    def find(training: Training) -> Facts:
        for save in training.of(events.Save):
            if any(isinstance(each, Operation) and each.name == "state_dict" for each in _parts(save.saved)):
                yield save.spot, "state_dict is named here and not called"
        for restore in training.of(events.Restore):
            if isinstance(restore.state, str):
                yield restore.spot, f"load_state_dict gets the path {restore.state!r}, and no state"

    yield from certain(trainings, find, where_reached=True)


@detector("source/checkpoint-incomplete")
def checkpoint_incomplete(trainings: Trainings) -> Iterator[Sighting]:
    """A training resumes, and one of its parts with a state of its own starts anew."""

    def find(training: Training) -> Facts:
        restored = {id(each.part): each for each in training.of(events.Restore) if isinstance(each.state, Loaded)}
        resumes = [each for each in restored.values() if each.part.kind in ("module", "wrapper")]
        if not resumes or "load_state_dict" in training.blind or not _goes_on(training, resumes[0]):
            return
        saves = [save for save in training.of(events.Save) if _states(save.saved) & {id(bare(resumes[0].part))}]
        parts = {
            id(each.optimizer): each.optimizer
            for each in training.of(events.OptimizerStep)
            if _has_state(each.optimizer)
        }
        parts |= {id(each.scheduler): each.scheduler for each in training.of(events.SchedulerStep)}
        for key, part in parts.items():
            is_other = key in restored or part.has_escaped or not _is_of(training, part, resumes[0].part)
            if is_other or part.spot is None or not saves:
                continue
            kept = [save for save in saves if key in _states(save.saved)]
            spot = resumes[0].spot if kept else saves[-1].spot
            verb = "is saved, and not taken over" if kept else "is not saved"
            yield spot, f"the state of the {part.kind} of line {part.spot.line} {verb}: it starts anew"

    yield from shown(trainings, find, throughout=True)


def _goes_on(training: Training, restore: events.Restore) -> bool:
    """Whether a training goes on from RESTORE, and does not begin with foreign weights: it knows how far it was."""
    numbers = (each for save in training.of(events.Save) for each in _parts(save.saved))
    ahead = itertools.takewhile(lambda each: not isinstance(each, events.Backward), training.executor.events)
    return restore in ahead and any(isinstance(each, Loaded) and each.keys for each in numbers)


def _is_of(training: Training, part: Object, model: Object) -> bool:
    """Whether the optimizer or scheduler PART works on parameters of MODEL, and not on those of a later training."""
    optimizer = part if part.kind == "optimizer" else part.argument("optimizer", 0)
    held = training.parameters_of(optimizer) if isinstance(optimizer, Object) else []
    return bool(set(held) & set(training.executor.parameters(model)))


def _states(value: Value) -> set[int]:
    """Of what VALUE holds the states."""
    found = [each.state["of"] for each in _parts(value) if isinstance(each, Object) and each.kind == "state"]
    return {id(each) for each in found} | {id(bare(each)) for each in found}


def _has_state(optimizer: Object) -> bool:
    """Whether OPTIMIZER keeps more than its parameters: all do, but for SGD without momentum."""
    return not optimizer.made.endswith(".SGD") or optimizer.argument("momentum", 2, 0) != 0


def _parts(value: Value) -> Iterator[Value]:
    """VALUE, and the values of a dict, a list or a tuple."""
    yield value
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for each in inside:
        yield from _parts(each)


@detector("source/resume-off-by-one")
def resume_off_by_one(trainings: Trainings) -> Iterator[Sighting]:
    """A resumed training runs the epoch that was saved last again, or leaves one out.

    What is saved at the end of an iteration N of the resumed loop is N more than the loaded number, and the shift of
    the loop's start: where a resumed training goes on with the next epoch, both together are N + 1.
    """

    def find(training: Training) -> Facts:
        ahead: dict[Spot, dict[int, int]] = {}
        for save in training.of(events.Save):
            if save.loops and _is_at_the_end(training, save):
                turn = save.loops[-1][1]
                for number in _counts(save.saved):
                    ahead.setdefault(number.spot or save.spot, {})[turn] = number.offset - turn - 1
        for spot, shifts in ahead.items():
            shift = set(shifts.values())
            if len(shifts) > 1 and shift in ({-1}, {1}):  # of several iterations: what does not count along is no epoch
                yield (
                    spot,
                    "a resumed training " + ("leaves one epoch out" if 1 in shift else "repeats the saved epoch"),
                )

    yield from shown(trainings, find, throughout=True)


def _counts(saved: Value) -> Iterator[Loaded]:
    """The numbers in SAVED that are loaded from under the same name."""
    for name, value in saved.items() if isinstance(saved, dict) else ():
        if isinstance(value, Loaded) and value.keys[-1:] == (name,):
            yield value


def _is_at_the_end(training: Training, save: events.Save) -> bool:
    """Whether the training of the iteration that SAVE stands in is done by then."""
    place = training.executor.events.index(save)
    depth = len(save.loops)
    mine = [
        at
        for at, each in enumerate(training.executor.events)
        if isinstance(each, events.Backward) and each.loops[:depth] == save.loops
    ]
    return bool(mine) and max(mine) < place


@detector("source/keys-mismatched")
def keys_mismatched(trainings: Trainings) -> Iterator[Sighting]:
    """A state is saved from a model in a wrapper, and loaded into one without, or the other way round."""

    def find(training: Training) -> Facts:
        for restore in training.of(events.Restore):
            state = restore.state
            if not isinstance(state, Loaded) or restore.part.kind not in ("module", "wrapper"):
                continue
            for save in training.of(events.Save):
                saved = _entry(save.saved, state.keys)
                is_named = isinstance(state.path, str) and isinstance(save.path, str)
                is_same = not is_named or save.path.startswith(state.path)  # also last.pt.tmp, renamed later
                if saved is None or not is_same or truth(restore.strict) is not True:
                    continue
                model = saved.state["of"]
                if bare(model) is bare(restore.part) and _head(model) != _head(restore.part):
                    names = f"`{_head(model)}…`" if _head(model) else "bare names"
                    yield (
                        restore.spot,
                        f"line {save.spot.line} saves {names}, and here `{_head(restore.part)}…` is asked",
                    )

    yield from shown(trainings, find, throughout=True)


def _entry(value: Value, keys: tuple[Value, ...]) -> Object | None:
    """The state that stands under KEYS of VALUE."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) and not isinstance(key, Unknown) else None
    return value if isinstance(value, Object) and value.kind == "state" else None


def _head(model: Object) -> str:
    """What the wrappers of MODEL put ahead of its names."""
    return "module." if model.made in _PREFIXING else ""


_PREFIXING = ("torch.nn.parallel.DistributedDataParallel", "torch.nn.DataParallel", "torch.nn.parallel.DataParallel")


@detector("source/mismatch-swallowed")
def mismatch_swallowed(trainings: Trainings) -> Iterator[Sighting]:
    """A state is loaded with strict=False, and nobody looks at the keys that did not fit."""

    def find(training: Training) -> Facts:
        for restore in training.of(events.Restore):
            is_whole = isinstance(restore.state, Loaded) and restore.part.kind in ("module", "wrapper")
            if is_whole and truth(restore.strict) is False and training.is_dropped(restore.spot):
                yield restore.spot, "keys that do not fit are skipped here, and nobody looks at which"

    yield from certain(trainings, find, where_reached=True)


@detector("source/loads-to-saved-device")
def loads_to_saved_device(trainings: Trainings) -> Iterator[Sighting]:
    """Every rank loads a checkpoint to the device that it was saved from."""

    def find(training: Training) -> Facts:
        if not training.replicas or not training.mentions(_CUDA):
            return
        used = [each.state for each in training.of(events.Restore)]
        paths = {id(each.path) for each in used if isinstance(each, Loaded)}
        for call in training.of(events.LibraryCall):
            where = call.arguments[1] if len(call.arguments) > 1 else call.keywords.get("map_location")
            is_load = call.name == "torch.load" and not call.guards and where is None and "**" not in call.keywords
            if is_load and paths & _path_of(call):
                yield call.spot, "without map_location all ranks load to the device that rank 0 saved from"

    yield from certain(trainings, find, where_reached=True)


_CUDA = re.compile(rb"cuda|nccl")


def _path_of(call: events.LibraryCall) -> set[int]:
    return {id(call.arguments[0] if call.arguments else call.keywords.get("f"))}


@detector("source/save-not-atomic")
def save_not_atomic(trainings: Trainings) -> Iterator[Sighting]:
    """The only checkpoint, from which the training resumes, is overwritten in place."""

    def find(training: Training) -> Facts:
        if training.mentions(_MOVES):
            return
        saves = [each for each in training.of(events.Save) if each.loops]
        resumed = itertools.takewhile(lambda each: not isinstance(each, events.Backward), training.executor.events)
        restored = [each.state for each in resumed if isinstance(each, events.Restore)]
        loaded = {each.path for each in restored if isinstance(each, Loaded) and isinstance(each.path, str)}
        for save in saves:
            mine = [each for each in saves if each.loops[-1][0] == save.loops[-1][0]]
            is_only = all(each.path == save.path for each in mine) and len({each.loops[-1] for each in mine}) > 1
            if isinstance(save.path, str) and save.path in loaded and is_only:
                yield save.spot, f"a job that is killed meanwhile leaves no whole {save.path!r} to resume from"

    yield from certain(trainings, find, where_reached=True)


_MOVES = re.compile(rb"os\.replace|os\.rename|shutil\.|\.rename\(|\.replace\(|copyfile")


@detector("source/seeds-incomplete")
def seeds_incomplete(trainings: Trainings) -> Iterator[Sighting]:
    """Some generators are seeded, and one that the training draws from is not."""

    def find(training: Training) -> Facts:
        calls = training.of(events.LibraryCall)
        seeded = {_SEEDS[each.name]: each for each in calls if each.name in _SEEDS}
        if any("seed" in each.name.rpartition(".")[2] and each.name not in _SEEDS for each in calls):
            return  # seed_everything and the like seed all of them
        loops = {loop for each in training.of(events.Backward) for loop, _ in each.loops}
        for call in calls if seeded and "seed" not in training.blind else ():
            kind = "numpy" if call.name.startswith("numpy.random.") else "random"
            if kind == "random" and not any(loop in loops for loop, _ in call.loops):  # the name of a run, say
                continue
            if kind not in seeded and call.name.rpartition(".")[2] in _DRAWS and not training.mentions(_SEEDERS):
                first = min(each.spot.line for each in seeded.values())
                yield call.spot, f"line {first} seeds {' and '.join(seeded)}; nothing seeds what {call.name} draws from"
                return

    yield from shown(trainings, find)


_SEEDS = {
    "torch.manual_seed": "torch",
    "torch.cuda.manual_seed": "CUDA",
    "torch.cuda.manual_seed_all": "CUDA",
    "random.seed": "random",
    "numpy.random.seed": "numpy",
}
_SEEDERS = re.compile(rb"worker_init_fn")
_DRAWS = frozenset({"random", "randint", "shuffle", "choice", "choices", "sample", "uniform", "gauss", "rand", "randn",
                    "permutation", "normal", "beta", "randrange", "random_sample", "binomial"})  # fmt: skip


@detector("source/dataset-owned-rng")
def dataset_owned_rng(trainings: Trainings) -> Iterator[Sighting]:
    """A generator that a dataset makes for itself draws the same numbers in every worker."""

    def find(training: Training) -> Facts:
        for loader in _loaders(training):
            dataset, workers = loader.argument("dataset", 0), loader.argument("num_workers", 5, 0)
            is_many = isinstance(workers, int) and workers > 1 and loader.argument("worker_init_fn", 10) is None
            if not isinstance(dataset, Object) or not is_many or training.mentions(_WORKER):
                continue
            for owner, name in _generators(dataset, 0):
                draw = next(filter(None, (_use_of(name, each) for each in _methods(owner))), None)
                if draw is not None:
                    yield draw, f"each of {workers} workers has a copy of self.{name} and draws the same numbers"

    yield from certain(trainings, find)


_WORKER = re.compile(rb"get_worker_info|worker_init_fn")
_GENERATORS = frozenset({"numpy.random.default_rng", "numpy.random.RandomState", "random.Random", "torch.Generator"})


def _generators(owner: Object, deep: int) -> Iterator[tuple[Object, str]]:
    """The random generators that OWNER holds, and what it consists of: transforms."""
    for name, value in owner.values.items():
        if isinstance(value, Unknown) and value.why in _GENERATORS:
            yield owner, name
        for each in value if isinstance(value, list | tuple) else (value,):
            held = each.frame.values.values() if isinstance(each, Function) and each.frame.function else (each,)
            for inner in itertools.chain.from_iterable(
                one if isinstance(one, list | tuple) else (one,) for one in held
            ):
                if isinstance(inner, Object) and inner.kind == "" and deep < _NESTED:
                    yield from _generators(inner, deep + 1)


_NESTED = 3


def _methods(owner: Object) -> Iterator[Function]:
    """The methods of OWNER, by whose first call it is built not counted."""
    lineage = owner.cls.lineage if owner.cls is not None else ()
    for each in lineage:
        if isinstance(each, Class):
            inside = (value for name, value in each.namespace.items() if name != "__init__")
            yield from (value for value in inside if isinstance(value, Function))


def _loaders(training: Training) -> list[Object]:
    return [each.made for each in training.of(events.Made) if each.made.kind == "loader"]


def _use_of(name: str, method: Function | None) -> Spot | None:
    """Where METHOD calls something of self.NAME."""
    for node in ast.walk(method.node) if method is not None else ():
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name) and method:
            return Spot(method.frame.file.path, node)
    return None


@detector("source/iterable-not-sharded")
def iterable_not_sharded(trainings: Trainings) -> Iterator[Sighting]:
    """Each worker of a loader goes through the whole of an IterableDataset."""

    def find(training: Training) -> Facts:
        for loader in _loaders(training):
            dataset, workers = loader.argument("dataset", 0), loader.argument("num_workers", 5, 0)
            is_many = isinstance(workers, int) and workers > 1
            method = dataset.method("__iter__") if isinstance(dataset, Object) else None
            if method is None or not is_many or dataset.cls is None or training.mentions(_WORKER):
                continue
            if "torch.utils.data.IterableDataset" in dataset.cls.externals and not _is_endless(method):
                yield (
                    Spot(method.frame.file.path, method.node),
                    f"it runs from its beginning in each of {workers} workers: {workers} times each sample an epoch",
                )

    yield from certain(trainings, find)


def _is_endless(method: Function) -> bool:
    return any(
        isinstance(each, ast.While) and isinstance(each.test, ast.Constant) and each.test.value
        for each in ast.walk(method.node)
    )


@detector("source/pickle-trusted")
def pickle_trusted(trainings: Trainings) -> Iterator[Sighting]:
    """Weights of others are loaded with weights_only=False: code in the file is run."""

    def find(training: Training) -> Facts:
        for call in training.of(events.LibraryCall):
            path = call.arguments[0] if call.arguments else call.keywords.get("f")
            is_trusting = call.name == "torch.load" and truth(call.keywords.get("weights_only", True)) is False
            if is_trusting and isinstance(path, Unknown) and _FOREIGN.search(path.why):
                yield call.spot, f"{path.why} may name any file, and weights_only=False runs the code in it"

    yield from certain(trainings, find, where_reached=True)


_FOREIGN = re.compile(r"^--.*(pretrain|init|weights|teacher|backbone|url)")
