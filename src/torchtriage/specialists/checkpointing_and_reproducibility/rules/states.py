"""What an execution of the program shows about states, and what stands in their place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torchtriage.core.evidence import Edit
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Facts, Trainings, certain, shown
from torchtriage.examine.source.execution.values import (
    Loaded,
    Member,
    Namespace,
    Object,
    Operation,
    Spot,
    Unknown,
    Value,
    truth,
)
from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.nodes import names_in
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.checkpointing_and_reproducibility.rules.saved import (
    MODELS,
    is_same_path,
    saved_parts,
)


@detector("source/whole-object-saved")
def whole_object_saved(trainings: Trainings) -> Iterator[Sighting]:
    """A checkpoint holds objects instead of their states, which torch.load refuses by default."""
    saves = [(run, save) for run in trainings.runs for save in run.of(events.Save)]
    healthy = {id(save.spot.node) for run, save in saves if not any(_whole(run, save))}

    def find(training: Training) -> Facts:
        for save in training.of(events.Save):
            is_open = _is_scratch(save.path) or id(save.spot.node) in healthy
            whole = [] if is_open else [*_whole(training, save)]
            for key, what in whole[:1] if all(key is None for key, _ in whole) else whole:
                spot = _entry_of(training, save, key)
                yield (
                    spot,
                    f"{what} is pickled with its class: torch.load refuses the file by default, and needs the same "
                    "code to be loaded",
                    _state_of,
                )

    yield from shown(trainings, find)


def _whole(training: Training, save: events.Save) -> Iterator[tuple[Value, str]]:
    """What of the saved value is an object, with its key."""
    items = save.saved.items() if isinstance(save.saved, dict) else [(None, save.saved)]
    is_read_again = any(
        isinstance(each.state, Loaded) and is_same_path(each.state.path, save.path)
        for each in training.of(events.Restore)
    )
    for key, value in items:
        for each in saved_parts(value):
            if isinstance(each, Object) and each.kind in _WHOLE:
                yield key, f"the whole {each.kind}"
            elif isinstance(each, Namespace) and each.name == "arguments" and is_read_again:
                yield key, "an argparse.Namespace"
            elif isinstance(each, Unknown) and each.why == "numpy.random.get_state" and is_read_again:
                yield key, "the state of NumPy's generator, which holds an array,"


def _entry_of(training: Training, save: events.Save, key: Value) -> Spot:
    """Where the value under KEY stands in what is saved, if the call or an assignment spells it out."""
    given = save.spot.node.args[:1] if isinstance(save.spot.node, ast.Call) else []
    for each in given if save.spot.path == training.script.text.path else ():
        pairs = zip(each.keys, each.values, strict=True) if isinstance(each, ast.Dict) else ()
        for name, value in pairs:
            if isinstance(name, ast.Constant) and name.value == key and key is not None:
                return Spot(save.spot.path, value)
        if key is None and dotted(each):
            return Spot(save.spot.path, each)
    return save.spot


def _state_of(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    is_named = isinstance(node, ast.Name | ast.Attribute)
    is_plain = is_named and not any(each in ast.unparse(node) for each in ("args", "random"))
    return script.appended("save-the-state", node, ".state_dict()") if is_plain and isinstance(node, ast.expr) else ()


def _is_scratch(path: Value) -> bool:
    """Whether PATH is memory, or a file that goes with the process."""
    while isinstance(path, Member):
        path = path.receiver
    return isinstance(path, Unknown) and _SCRATCH.search(path.why) is not None


_SCRATCH = re.compile(r"BytesIO|tempfile|buffer", re.IGNORECASE)
_WHOLE = frozenset({"module", "wrapper", "optimizer", "scheduler", "scaler"})


@detector("source/state-dict-not-called")
def state_dict_not_called(trainings: Trainings) -> Iterator[Sighting]:
    """A state_dict is named but not called, or load_state_dict is given a path or asked for a module."""

    def find(training: Training) -> Facts:
        for spot in _uncalled(training):
            yield (
                spot,
                f"`{ast.unparse(spot.node)}` without parentheses is the method and not the state: torch.load refuses "
                "the file, or load_state_dict raises TypeError",
                _called,
            )
        for restore in training.of(events.Restore):
            if _is_path(restore.state):
                yield restore.spot, "load_state_dict takes the state itself, and gets a path: it raises TypeError"
        for use in training.of(events.AnswerUse):
            what = "None" if use.of.kind != "module" else "the missing and unexpected keys"
            lost = ", and nothing else holds what was loaded" if use.is_lost else ""
            yield use.spot, f"load_state_dict loads in place and returns {what}, not the {use.of.kind}{lost}", _alone

    yield from shown(trainings, find)


def _uncalled(training: Training) -> Iterator[Spot]:
    """Where state_dict is named, and its method saved, loaded, or asked for entries."""
    yield from (each.spot for each in training.of(events.UncalledState))
    states = [each.saved for each in training.of(events.Save)] + [each.state for each in training.of(events.Restore)]
    states += [each for each in training.executor.handed if isinstance(each, dict) and not _is_registry(each)]
    for state in states:
        named = (each for each in saved_parts(state) if isinstance(each, Operation) and each.name == "state_dict")
        yield from (each.spot for each in named if each.spot is not None)


def _is_registry(value: dict[Value, Value]) -> bool:
    """Whether VALUE keeps methods that are called later: {"save": model.state_dict, "load": model.load_state_dict}."""
    loads = any(isinstance(each, Operation) and each.name != "state_dict" for each in value.values())
    return loads or any(isinstance(key, str) and _METHODS.search(key) for key in value)


_METHODS = re.compile(r"fn|func|callback|getter|hook|method|call")


def _is_path(value: Value) -> bool:
    """Whether VALUE is a text or a path, and no state."""
    if isinstance(value, str):
        return True
    is_option = isinstance(value, Unknown) and value.is_option and value.why.startswith("--")
    is_text = type(value) is Unknown or (isinstance(value, Member) and value.why == "text")
    return is_option or (is_text and _PATH.match(value.why) is not None)


_PATH = re.compile(r"text$|os\.path\.|pathlib\.|builtins\.str\b")


def _called(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    return script.appended("call-it", node, "()") if isinstance(node, ast.expr) else ()


def _alone(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """The call without what its answer is assigned to: `net = net.load_state_dict(state)`."""
    stored = next((each for each in ast.walk(script.tree) if isinstance(each, ast.Assign) and each.value is node), None)
    called = node.func if isinstance(node, ast.Call) else None
    if stored is None or not isinstance(called, ast.Attribute) or len(stored.targets) != 1:
        return ()
    if not dotted(called.value) or dotted(stored.targets[0]) != dotted(called.value):
        return ()
    return script.change("call-it", script.text.span(stored)[0], script.text.span(stored.value)[0], "")


@detector("source/mismatch-swallowed")
def mismatch_swallowed(trainings: Trainings) -> Iterator[Sighting]:
    """A state is loaded with strict=False and nobody looks at which keys did not fit."""

    def find(training: Training) -> Facts:
        for restore in training.of(events.Restore):
            is_lax = restore.part.kind in MODELS and truth(restore.strict) is False and _is_read(restore.state)
            is_meant = is_lax and (_is_partial(training, restore) or _is_published(training, restore))
            is_meant = is_meant or _is_checked_beside(training, restore)
            if is_lax and _is_unread(training, restore) and not is_meant:
                yield (
                    restore.spot,
                    "keys that do not fit are skipped here without a word: when none fits, the model keeps the "
                    "weights that it was made with",
                )

    yield from certain(trainings, find, where_reached=True)


def _is_checked_beside(training: Training, lax: events.Restore) -> bool:
    """Whether the state that LAX takes over has to fit another model whole: the old one of continual learning."""
    others = (each for each in training.of(events.Restore) if each.state is lax.state and each.part is not lax.part)
    return any(each.part.kind in MODELS and truth(each.strict) is True for each in others)


def _is_read(state: Value) -> bool:
    """Whether STATE comes from a file, or from a caller that is not in sight."""
    if isinstance(state, dict):
        state = next(iter(state.values()), None)
    if isinstance(state, Loaded):
        return True
    return isinstance(state, Unknown) and (state.why in symbols().weight_readers or state.why in _STATES)


def _is_published(training: Training, restore: events.Restore) -> bool:
    """Whether the state is downloaded from an address that stands in the code: whoever wrote it knows that file."""
    if not isinstance(restore.state, Unknown) or not restore.state.why.endswith("_url"):
        return False
    code = training.code_around(restore.spot)
    wanted = {each.arg for each in ast.walk(code) if isinstance(each, ast.arg)}
    calls = [each for each in ast.walk(code) if isinstance(each, ast.Call) and dotted(each.func).endswith("_url")]
    return bool(calls) and all(each.args and wanted.isdisjoint(names_in(each.args[0])) for each in calls)


_STATES = ("state_dict", "state", "weights", "tensors", "sd", "checkpoint")
"""What a state is called that a caller gives."""


def _is_unread(training: Training, restore: events.Restore) -> bool:
    """Whether nobody looks at what load_state_dict returns, nor at the keys before."""
    inner = [each for each in training.definitions_around(restore.spot) if not isinstance(each, ast.ClassDef)][-1:]
    if any(each.name == "load_state_dict" for each in inner):
        return False
    tree = inner[0] if inner else training.script.tree
    given = restore.spot.node.args[:1] if isinstance(restore.spot.node, ast.Call) else []
    if any(_compares_keys(each, dotted(state)) for state in given for each in ast.walk(tree)):
        return False
    if training.is_dropped(restore.spot):
        return True
    stored = (each for each in ast.walk(tree) if isinstance(each, ast.Assign) and each.value is restore.spot.node)
    names = {each.id for assign in stored for each in assign.targets if isinstance(each, ast.Name)}
    loaded = {each.id for each in ast.walk(tree) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
    return bool(names) and not names & loaded


def _compares_keys(node: ast.AST, name: str) -> bool:
    """Whether NODE goes through the keys of the state NAME: `if key in state`, set(state) - set(own)."""
    if not name:
        return False
    match node:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[held]):
            return _is_keys(held, name)
        case ast.BinOp(op=ast.Sub() | ast.BitXor(), left=left, right=right):
            return _is_keys(left, name) or _is_keys(right, name)
        case ast.Call(func=ast.Attribute(attr="difference" | "symmetric_difference", value=one), args=given):
            return any(_is_keys(each, name) for each in (one, *given))
    return False


def _is_keys(node: ast.expr, name: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="keys"), args=[]):
            return dotted(inner) == name
        case ast.Call(func=ast.Name(id="set" | "list"), args=[inner]):
            return _is_keys(inner, name)
    return dotted(node) == name


def _is_partial(training: Training, restore: events.Restore) -> bool:
    """Whether the names say that a part alone is meant to be loaded; the weights of a backbone fit a backbone."""
    said = training.code(restore.spot).lower()
    called = getattr(restore.spot.node, "func", None)
    held = dotted(called.value) if isinstance(called, ast.Attribute) else ""
    of, _, part = held.rpartition(".")
    is_whole = "backbone" not in part.lower()
    if _PARTIAL.search(said) is not None or (is_whole and "backbone" in said):
        return True
    # `if "v_head." in key:` before self.v_head.load_state_dict(state): of the whole state the part with that name
    around = ast.walk(training.code_around(restore.spot)) if of else ()
    return any(isinstance(each, ast.Constant) and each.value in (part, f"{part}.") for each in around)


_PARTIAL = re.compile(r"lora|adapter|peft|ema|partial|delta|prompt")
"""How states are called that are part of a model."""
