"""What an execution of the program shows about states that are kept, saved and taken over again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.modules import bare
from torchtriage.examine.source.execution.training import Facts, Training, Trainings, certain, shown
from torchtriage.examine.source.execution.values import (
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
