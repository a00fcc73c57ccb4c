"""What the source alone shows about debugging aids that stay on while a model is trained."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Block, Call, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps

_SETTERS = ("torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly")
_CONTEXTS = ("torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly", *_SETTERS)
_PROFILERS = (
    *("torch.profiler.profile", "torch.profiler.profiler.profile", "torch.autograd.profiler.profile"),
    "torch.autograd.profiler_legacy.profile",
)
_SOMETIMES = frozenset({"arm", "handler"})
_PURPOSE = ("profil", "bench", "trace", "debug", "perf")
_BLOCKING = "CUDA_LAUNCH_BLOCKING"
_TAILS = ("set_detect_anomaly", "detect_anomaly", "profile")


@detector("source/debug-left-on")
def debug_left_on(script: Script) -> Iterator[Sighting]:
    """A debugging aid that slows every step is switched on for the whole training."""
    says = _BLOCKING.encode() in script.text.data
    if not says and not any(tail.encode() in script.text.data for tail in _TAILS):
        return
    steps = [step for step in training_steps(script) if step.ring.is_loop or step.optimizing()]
    if not any(step.backwards for step in steps):
        return
    yield from _anomaly(script, steps)
    yield from _profiled(script, steps)
    for node in _blocking(script) if says else ():
        yield script.seen(node, f"{_BLOCKING}=1 makes the host wait for each kernel")


def _anomaly(script: Script, steps: list[TrainingStep]) -> Iterator[Sighting]:
    for call in script.named(*_SETTERS):
        kept = _is_on(call) and _is_statement(call) and not _is_taken_back(script)
        if kept and not _is_sometimes(call.path):
            yield script.seen(
                call.node, "anomaly detection is on for the whole training: it records a stack for every operation"
            )
    for call in script.named(*dict.fromkeys(_CONTEXTS)):
        on = (call.tail == "detect_anomaly" or _is_on(call)) and not _is_sometimes(call.path)
        if on and any(_is_around_backward(step, owner) for owner in _opened(call) for step in steps):
            yield script.seen(
                call.node, "anomaly detection is on in every step: it records a stack for every operation"
            )


def _is_on(call: Call) -> bool:
    given = call.argument("mode", 0)
    return isinstance(given, ast.Constant) and given.value is True


def _is_statement(call: Call) -> bool:
    return isinstance(call.statement, ast.Expr) and call.statement.value is call.node


def _is_taken_back(script: Script) -> bool:
    """Whether the file also switches it off."""
    return any(
        isinstance(each := call.argument("mode", 0), ast.Constant) and each.value is False
        for call in script.named(*_SETTERS)
    )


def _is_sometimes(path: tuple[Block, ...]) -> bool:
    """Under a condition, but for that of the main module."""
    return any(block.kind in _SOMETIMES and not _is_main(block.owner) for block in path)


def _is_main(owner: ast.AST) -> bool:
    test = owner.test if isinstance(owner, ast.If) else None
    return isinstance(test, ast.Compare) and dotted(test.left) == "__name__"


def _opened(call: Call) -> Iterator[ast.With | ast.AsyncWith]:
    """The with statements that open what CALL makes: itself, or by the one name that it is given."""
    owner = call.statement
    if isinstance(owner, ast.With | ast.AsyncWith):
        if any(item.context_expr is call.node for item in owner.items):
            yield owner
        return
    if not isinstance(owner, ast.Assign) or owner.value is not call.node:
        return
    names = {dotted(target) for target in owner.targets} - {""}
    for store in (store for scope in (call.scope,) for name in names for store in scope.stores.get(name, ())):
        if store.value is not call.node:  # another value as well
            return
    for node in ast.walk(call.scope.node):
        if isinstance(node, ast.With) and any(dotted(item.context_expr) in names for item in node.items):
            yield node


def _is_around_backward(step: TrainingStep, owner: ast.AST) -> bool:
    """Whether the step's backward runs under the with statement OWNER."""
    around = [block for backward in step.backwards for block in backward.event.path]
    return any(block.kind == "with" and block.owner is owner for block in (*around, *_outside(step)))


def _outside(step: TrainingStep) -> list[Block]:
    return [*(block for site in step.sites for block in site.path), *step.ring.block.path]


def _profiled(script: Script, steps: list[TrainingStep]) -> Iterator[Sighting]:
    """A profiler without a schedule around all epochs: it keeps every event until the training has ended."""
    for call in script.named(*_PROFILERS):
        if _is_sometimes(call.path) or call.argument("schedule", 1 if "torch.profiler" in script.name(call) else None):
            continue
        if _is_purpose(call) or any(keyword.arg in ("enabled", None) for keyword in call.node.keywords):
            continue
        around = any(_is_around_epochs(step, owner) for owner in _opened(call) for step in steps)
        if around or any(_is_before_epochs(step, start) for start in _started(script, call) for step in steps):
            yield script.seen(call.node, "the profiler records every operation of the whole training, all epochs of it")


def _started(script: Script, call: Call) -> list[Call]:
    """The start() of the profiler that CALL makes, in the same function."""
    statement = call.statement
    targets = statement.targets if isinstance(statement, ast.Assign) and statement.value is call.node else []
    names = {dotted(target) for target in targets} - {""}
    return [each for each in script.calls("start") if each.scope is call.scope and dotted(each.receiver) in names]


def _is_before_epochs(step: TrainingStep, start: Call) -> bool:
    """Whether the loop over epochs comes after START on the same level, and none of its loops says that it is short."""
    ring = step.epochs
    if ring is None or ring.scope is not start.scope or start.path != ring.block.path[:-1]:
        return False
    short = _is_short(step.ring.block.owner) or _is_short(ring.block.owner)
    line = getattr(ring.block.owner, "lineno", 0)
    stopped = any(start.node.lineno < each.node.lineno < line for each in step.script.calls("stop"))
    return not short and not stopped and start.node.lineno < line


def _is_purpose(call: Call) -> bool:
    """Whether the function that opens the profiler says by its name that it measures."""
    return any(word in call.scope.name.lower() for word in _PURPOSE)


def _is_around_epochs(step: TrainingStep, owner: ast.AST) -> bool:
    """Whether the loop over epochs stands under OWNER, and none of its loops says by itself that it is short."""
    ring = step.epochs
    if ring is None or _is_short(step.ring.block.owner) or _is_short(ring.block.owner):
        return False
    paths = [ring.block.path, *(site.path for site in step.sites)]
    return any(
        block.kind == "with"
        and block.owner is owner
        and (ring.block not in path or path.index(block) < path.index(ring.block))
        for path in paths
        for block in path
    )


def _is_short(owner: ast.AST) -> bool:
    """Over a few turns, or left early by a break."""
    if not isinstance(owner, ast.For | ast.While | ast.AsyncFor):
        return True
    if any(isinstance(node, ast.Break) for node in ast.walk(owner)):
        return True
    match owner:
        case ast.For(iter=ast.Call(func=ast.Name(id="range"), args=[*_, ast.Constant(value=int(turns))])):
            return turns <= 5
        case (
            ast.For(iter=ast.Call(func=ast.Name(id="islice")))
            | ast.For(iter=ast.Call(func=ast.Attribute(attr="islice")))
        ):
            return True
    return False


def _blocking(script: Script) -> Iterator[ast.AST]:
    """Where the file sets CUDA_LAUNCH_BLOCKING to 1: by an entry, by update, by setdefault or by putenv."""
    for scope in script.facts.scopes:
        for name, stores in scope.stores.items():
            if name.endswith("environ[]"):
                yield from (
                    store.node for store in stores
                    if isinstance(store.node, ast.Assign) and _is_one(store.value) and not _is_sometimes(store.path)
                    if any(isinstance(each, ast.Subscript) and _is_key(each.slice) for each in store.node.targets)
                )  # fmt: skip
            if name.endswith("environ"):
                yield from (
                    store.node for store in stores
                    if store.how == "augment" and isinstance(store.value, ast.Dict) and _writes(store.value)
                    and not _is_sometimes(store.path)
                )  # fmt: skip
    for call in script.calls("setdefault", "update", "putenv"):
        environ = dotted(call.receiver).endswith("environ") or script.name(call) == "os.putenv"
        if environ and not _is_sometimes(call.path) and _sets(call):
            yield call.node


def _sets(call: Call) -> bool:
    given = call.node.args
    if call.tail != "update":
        return len(given) == 2 and _is_key(given[0]) and _is_one(given[1])
    if any(keyword.arg == _BLOCKING and _is_one(keyword.value) for keyword in call.node.keywords):
        return True
    return bool(given) and isinstance(given[0], ast.Dict) and _writes(given[0])


def _writes(entries: ast.Dict) -> bool:
    pairs = zip(entries.keys, entries.values, strict=True)
    return any(key is not None and _is_key(key) and _is_one(value) for key, value in pairs)


def _is_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == _BLOCKING


def _is_one(node: ast.expr | None) -> bool:
    match node:
        case ast.Constant(value="1"):
            return True
        case ast.Call(func=ast.Name(id="str"), args=[ast.Constant(value=1)]):
            return True
    return False
