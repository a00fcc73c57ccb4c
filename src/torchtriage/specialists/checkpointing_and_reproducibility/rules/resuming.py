"""What an execution of the program shows about trainings that are resumed, and states that are taken over again."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.registration import bare
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, shown
from torchtriage.examine.source.execution.values import (
    Class,
    Function,
    Loaded,
    Object,
    Spot,
    Unknown,
    Value,
    is_module,
    truth,
)
from torchtriage.examine.source.nodes import once
from torchtriage.specialists.checkpointing_and_reproducibility.rules.saved import (
    MODELS,
    is_same_path,
    saved_parts,
    saved_states,
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
                        f"{restore.spot} takes it over when the steps in between have changed it",
                    )
        yield from _kept_for_later(training)
        yield from _saved_later(training)

    yield from shown(trainings, find)


def _saved_later(training: Training) -> Facts:
    """States that are written to a file when the model has been trained further: those of the best epoch."""
    for save in training.of(events.Save):
        states = (each for each in map(_shared, saved_parts(save.saved)) if each is not None)
        for state in {id(each): each for each in states}.values():
            after = training.executor.events[state.state["at"] :]
            held = set(training.executor.parameters(state.state["of"])) if is_module(state.state["of"]) else set()
            between = after[: after.index(save)] if save in after else []
            steps = [each for each in between if isinstance(each, events.OptimizerStep)]
            trained = [each for each in steps if held & set(training.parameters_of(each.optimizer))]
            if trained and state.spot is not None and "copied" not in state.state:
                yield state.spot, f"{save.spot} writes it when the steps in between have changed it"


def _kept_for_later(training: Training) -> Facts:
    """States of a model that somebody trains in between, which one method of a class keeps and another one loads."""
    receiver, cls = training.executor.receiver, training.executor.entry
    if receiver is None or not isinstance(cls, Class):
        return
    for name, value in receiver.values.items():
        state = _shared(value)
        if state is None or state.spot is None or "copied" in state.state or name not in _attributes_loaded(cls.node):
            continue
        if state.state["of"].state.get("is_given"):
            fact = f"`self.{name}` holds the model's own tensors, not copies: further training changes them, too"
            yield state.spot, fact


@once
def _attributes_loaded(cls: ast.ClassDef) -> frozenset[str]:
    """The attributes of objects of CLS that one of its methods loads as a state."""
    return frozenset(
        each.attr
        for call in ast.walk(cls)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict"
        for each in itertools.chain.from_iterable(map(ast.walk, call.args[:1]))
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == "self"
    )


def _shared(value: Value) -> Object | None:
    """The state whose memory VALUE shares: it itself, or a dict of its entries."""
    if isinstance(value, Object) and value.kind == "state":
        return value
    entries = value.values() if isinstance(value, dict) else ()
    states = [each.state if isinstance(each, Tensor) else None for each in entries]
    return states[0] if states and all(each is states[0] for each in states) else None


@detector("source/checkpoint-incomplete")
def checkpoint_incomplete(trainings: Trainings) -> Iterator[Sighting]:
    """A training resumes from a checkpoint without all of its state."""

    def find(training: Training) -> Facts:
        restores = [each for each in training.of(events.Restore) if isinstance(each.state, Loaded)]
        resumes = [each for each in restores if each.part.kind in MODELS and truth(each.strict) is True]
        if not resumes or "load_state_dict" in training.blind or not _goes_on(training, resumes[0]):
            return
        models = [each.part for each in resumes]
        saves = [
            each for each in training.of(events.Save) if saved_states(each.saved) & {id(bare(one)) for one in models}
        ]
        placed = _placed(training)
        missing = [
            each
            for each in _stateful(training, models)
            if _is_made_for_all(training, each, resumes[0])
            and each not in placed
            and not _is_restored(each, restores)
            and not _is_made_anew(training, each, restores)
        ]
        if missing and saves and resumes[0].state.loaded is not None:
            kept = set().union(*(saved_states(each.saved) for each in saves))
            named = (f"the {each.kind} of {each.spot}{_NEVER[id(each) in kept]}" for each in missing if each.spot)
            parts = [*dict.fromkeys(named)]
            verb = "start" if len(parts) > 1 else "starts"
            yield (
                resumes[0].state.loaded,
                f"training resumes from these weights, but {_listed(parts)} {verb} from scratch",
            )

    yield from shown(trainings, find, throughout=True)


_NEVER = {True: " (saved, never loaded)", False: " (not saved)"}


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _stateful(training: Training, models: list[Object]) -> list[Object]:
    """The optimizers of MODELS, their schedulers and scalers, as far as they have a state of their own."""
    steps = [each for each in training.of(events.OptimizerStep) if _is_of(training, each.optimizer, models)]
    used = [each.optimizer for each in steps if _has_state(each.optimizer)]
    used += [each.scheduler for each in training.of(events.SchedulerStep) if _is_of(training, each.scheduler, models)]
    used += [each.scaler for each in steps if each.scaler is not None and not each.scaler.keywords]
    return [each for each in dict.fromkeys(used) if each.spot is not None and not each.state.get("is_given")]


def _is_made_for_all(training: Training, part: Object, restore: events.Restore) -> bool:
    """Whether PART is made once for the training of RESTORE: a warm-up of the first epoch is not."""
    made = next((each for each in training.of(events.Made) if each.made is part), None)
    return made is None or made.loops == restore.loops[: len(made.loops)]


def _placed(training: Training) -> list[Object]:
    """The schedulers that get the epoch as an argument, or reach it by steps before the training."""
    found: list[Object] = []
    has_begun = False
    for event in training.executor.events:
        has_begun |= isinstance(event, events.Backward)
        if isinstance(event, events.SchedulerStep) and (event.is_placed or not has_begun):
            found.append(event.scheduler)
    return found


def _is_restored(part: Object, restores: list[events.Restore]) -> bool:
    """Whether PART loads a state, or the program sets it to where the loaded training was."""
    given = (*part.arguments, *part.keywords.values(), *part.values.values())
    return part.has_escaped or any(each.part is part for each in restores) or any(map(_is_of_file, given))


def _is_made_anew(training: Training, part: Object, restores: list[events.Restore]) -> bool:
    """Whether PART is an optimizer that takes the place of one which has loaded its state: with a lower rate, later."""
    mine = set(training.parameters_of(part)) if part.kind == "optimizer" else set()
    others = [each.part for each in restores if each.part.kind == "optimizer"]
    return bool(mine) and any(set(training.parameters_of(each)) == mine for each in others)


def _is_of_file(value: Value) -> bool:
    """Whether VALUE is a number of a checkpoint, or a function that computes with one: LambdaLR(opt, lambda n: …)."""
    if not isinstance(value, Function):
        return isinstance(value, Loaded)
    names = (each.id for each in ast.walk(value.node) if isinstance(each, ast.Name))
    homes = ((name, value.frame.home(name)) for name in names)
    return any(home is not None and isinstance(home[name], Loaded) for name, home in homes)


def _goes_on(training: Training, restore: events.Restore) -> bool:
    """Whether a training goes on from RESTORE, and does not begin with foreign weights, or with those that one rank has
    written for all.

    It knows how far it was, or writes the same file again.
    """
    saves = training.of(events.Save)
    before = itertools.takewhile(lambda each: each is not restore, training.executor.events)
    if any(isinstance(each, events.Save) and is_same_path(restore.state.path, each.path) for each in before):
        return False
    numbers = (each for save in saves for each in saved_parts(save.saved))
    ahead = itertools.takewhile(lambda each: not isinstance(each, events.Backward), training.executor.events)
    is_own = any(is_same_path(restore.state.path, save.path) for save in saves)
    counted = (each for each in numbers if isinstance(each, Loaded) and each.keys)
    return restore in ahead and (is_own or any(_SETTINGS.search(str(each.keys[-1])) is None for each in counted))


_SETTINGS = re.compile(r"conf|args|opt(ion)?s|cfg|param|vocab|meta|class|arch|setting", re.IGNORECASE)
"""What a file of weights holds beside them, and the program writes again, without going on from there."""


def _is_of(training: Training, part: Object, models: list[Object]) -> bool:
    """Whether the optimizer or scheduler PART works on parameters of MODELS, and not on those of a later training."""
    optimizer = part if part.kind == "optimizer" else part.argument("optimizer", 0)
    held = set(training.parameters_of(optimizer)) if isinstance(optimizer, Object) else set()
    return any(held & set(training.executor.parameters(each)) for each in models)


def _has_state(optimizer: Object) -> bool:
    """Whether OPTIMIZER keeps more than its parameters: all do, but for SGD without momentum."""
    return not optimizer.made.endswith(".SGD") or optimizer.argument("momentum", 2, 0) != 0


@detector("source/resume-off-by-one")
def resume_off_by_one(trainings: Trainings) -> Iterator[Sighting]:
    """A resumed training runs the epoch that was saved last again, or leaves one out.

    What is saved at the end of an iteration N of the resumed loop is N more than the loaded number, and the shift of
    the loop's start: where a resumed training goes on with the next epoch, both together are N + 1.
    """

    def find(training: Training) -> Facts:
        ahead: dict[tuple[Spot, tuple[Value, ...]], dict[int, int]] = {}
        for save in training.of(events.Save):
            if save.loops and _is_at_the_end(training, save):
                turn = save.loops[-1][1]
                for number in _counts(save.saved):
                    key = number.spot or save.spot, number.keys
                    ahead.setdefault(key, {})[turn] = number.offset - turn - 1
        for (spot, _), shifts in ahead.items():
            shift = set(shifts.values())
            if len(shifts) > 1 and shift in ({-1}, {1}):  # of several iterations: what does not count along is no epoch
                yield (
                    spot,
                    "a resumed training " + ("leaves one epoch out" if 1 in shift else "repeats the saved epoch"),
                )

    yield from shown(trainings, find, throughout=True)


_DEEP = 5
"""Dicts within each other that are looked into: one may hold itself."""
_STEPS = re.compile(r"step|iter|batch", re.IGNORECASE)
"""How numbers are called that count batches: one of 100,000 is not missed."""


def _counts(saved: Value, deep: int = 0) -> Iterator[Loaded]:
    """The numbers in SAVED that are loaded from under the same name."""
    for name, value in saved.items() if isinstance(saved, dict) and deep < _DEEP else ():
        is_step = isinstance(name, str) and _STEPS.search(name) is not None
        if isinstance(value, Loaded) and value.keys[-1:] == (name,) and not is_step:
            yield value
        yield from _counts(value, deep + 1)


def _is_at_the_end(training: Training, save: events.Save) -> bool:
    """Whether the training of the iteration that SAVE stands in is done by then."""
    mine = [each for each in training.of(events.Backward) if each.loops[: len(save.loops)] == save.loops]
    return bool(mine) and mine[-1] in training.events_before(save)


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
                is_same = is_named and save.path.startswith(state.path)  # also last.pt.tmp, renamed later
                is_same |= not isinstance(state.path, str) and not isinstance(save.path, str)
                if saved is None or not is_same or truth(restore.strict) is not True:
                    continue
                model = saved.state["of"]
                if bare(model) is bare(restore.part) and _head(model) != _head(restore.part):
                    names = f"`{_head(model)}…`" if _head(model) else "bare names"
                    yield (
                        restore.spot,
                        f"{save.spot} saves {names}, and here `{_head(restore.part)}…` is asked",
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
