"""What the source alone shows about debugging aids that stay on while a model is trained."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep, training_steps
from torchtriage.examine.source.torch_api.symbols import symbols

_SETTERS = symbols().anomaly_setters
_CONTEXTS = symbols().anomaly_contexts | _SETTERS
_PROFILERS = symbols().profilers
_SOMETIMES = frozenset({"arm", "handler"})
_PURPOSE = ("profil", "bench", "trace", "debug", "perf")
_WANTED = ("debug", "anomal", "profil", "trace", "check", "verbose", "nan", "bad")
_LAST = frozenset({"stop", "__exit__"})
_ENDS = _LAST | {"start", "__enter__"}
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
        kept = _is_on(script, call) and _is_statement(call) and not _is_taken_back(script)
        if kept and not _is_sometimes(call.path):
            yield script.seen(
                call.node, "anomaly detection is on for the whole training: it records a stack for every operation"
            )
    for call in script.named(*_CONTEXTS):
        on = (call.tail == "detect_anomaly" or _is_on(script, call)) and not _is_sometimes(call.path)
        if on and any(_is_around_backward(step, call) or _is_entered_before(step, call) for step in steps):
            yield script.seen(
                call.node, "anomaly detection is on in every step: it records a stack for every operation"
            )


def _is_on(script: Script, call: Call) -> bool:
    """By True, or by a name of the module that is True."""
    ends = script.trace.origins(call.argument("mode", 0), call.scope)
    return bool(ends) and all(
        isinstance(end.node, ast.Constant)
        and end.node.value is True
        and (end.store is None or _is_fixed(script, end.store))
        for end in ends
    )


def _is_fixed(script: Script, store: Store) -> bool:
    return (
        store.scope.kind == "module"
        and store.how == "assign"
        and len(script.names.stores(store.name, store.scope)) == 1
    )


def _is_statement(call: Call) -> bool:
    """Whether CALL is a statement of its own, or gives its result a name that no with statement opens."""
    statement = call.statement
    if isinstance(statement, ast.Assign) and statement.value is call.node:
        names = {dotted(each) for each in statement.targets}
        opened = (each for each in ast.walk(call.scope.node) if isinstance(each, ast.withitem))
        return all(dotted(each.context_expr) not in names for each in opened)
    return isinstance(statement, ast.Expr) and statement.value is call.node


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


def _is_around_backward(step: TrainingStep, made: Call) -> bool:
    """Whether the step's backward runs under a with statement that opens what MADE makes."""
    around = [
        (block, backward.call.scope) for backward in step.backwards if not _is_rare(step, backward.event.path)
        for block in backward.event.path
    ]  # fmt: skip
    return any(_opens(step.script, block, scope, made) for block, scope in (*around, *_outside(step)))


def _opens(script: Script, block: Block, scope: Scope, made: Call) -> bool:
    """Whether BLOCK stands under a with statement for what MADE makes, directly or by a name."""
    if block.kind != "with" or not isinstance(block.owner, ast.With | ast.AsyncWith):
        return False
    contexts = [item.context_expr for item in block.owner.items]
    if made.node in contexts:
        return True
    ends = [end.node for each in contexts for end in script.trace.origins(each, scope)]
    return (
        made.node in ends
        and all(end is made.node for end in ends if not isinstance(end, ast.Call))
        and len(ends) == len(contexts)
    )


def _is_entered_before(step: TrainingStep, made: Call) -> bool:
    """stack.enter_context(detect_anomaly()) in the function of the loop, before it."""
    scopes = {id(scope): ring for ring in (step.ring, step.epochs) if ring is not None for scope in (ring.scope,)}
    ring = scopes.get(id(made.scope))
    return ring is not None and any(
        call.scope is made.scope and made.node in call.node.args and not _is_sometimes(call.path)
        and call.node.lineno < getattr(ring.block.owner, "lineno", 0)
        for call in step.script.calls("enter_context")
    )  # fmt: skip


def _is_rare(step: TrainingStep, path: tuple[Block, ...]) -> bool:
    """Whether the step comes to this backward only under a condition."""
    inside = path[path.index(step.ring.block) + 1 :] if step.ring.block in path else path
    return any(block.kind in _SOMETIMES and not _is_flag(block.owner) for block in inside)


def _is_flag(owner: ast.AST) -> bool:
    """Whether OWNER is `if train:`, as the one function goes over the data to train, and to validate."""
    name = dotted(owner.test).lower() if isinstance(owner, ast.If) else ""
    return bool(name) and not any(word in name for word in _WANTED)


def _outside(step: TrainingStep) -> list[tuple[Block, Scope]]:
    sites = ((block, site.scope) for site in step.sites for block in site.path)
    return [*sites, *((block, step.ring.scope) for block in step.ring.block.path)]


def _profiled(script: Script, steps: list[TrainingStep]) -> Iterator[Sighting]:
    """A profiler without a schedule around all epochs: it keeps every event until the training has ended."""
    for call in script.named(*_PROFILERS):
        if _is_sometimes(call.path) or call.argument("schedule", 1 if "torch.profiler" in script.name(call) else None):
            continue
        if _is_purpose(call) or any(keyword.arg in ("enabled", None) for keyword in call.node.keywords):
            continue
        if any(
            _is_around_epochs(step, call)
            or _is_before_epochs(step, call)
            or (step.epochs is not None and not _is_short(step.epochs.block.owner) and _is_entered_before(step, call))
            for step in steps
        ):
            yield script.seen(call.node, "the profiler records every operation of the whole training, all epochs of it")


def _is_before_epochs(step: TrainingStep, made: Call) -> bool:
    """Whether start() of what MADE makes surely comes before the loop over epochs, and no stop() before its end."""
    ring, script = step.epochs, step.script
    if ring is None or _is_short(step.ring.block.owner) or _is_short(ring.block.owner):
        return False
    whole = script.written.events(Ring(ring.scope.body, ring.scope))
    inside = [event.order for event in whole if ring.block in event.path]
    used = [
        event for event in whole
        if (call := event.call) is not None and call.tail in _ENDS and call.receiver is not None
        and any(end.node is made.node for end in script.trace.origins(call.receiver, call.scope))
    ]  # fmt: skip
    if any(event.call and event.call.tail in _LAST and event.order <= max(inside) for event in used):
        return False
    return any(event.order < min(inside) and not _is_sometimes(event.path) for event in used)


def _is_purpose(call: Call) -> bool:
    """Whether the function that opens the profiler says by its name that it measures."""
    return any(word in call.scope.name.lower() for word in _PURPOSE)


def _is_around_epochs(step: TrainingStep, made: Call) -> bool:
    """Whether the loop over epochs runs under what MADE makes, and none of its loops says that it is short."""
    ring = step.epochs
    if ring is None or _is_short(step.ring.block.owner) or _is_short(ring.block.owner):
        return False
    paths = [(ring.block.path, ring.scope), *((site.path, site.scope) for site in step.sites)]
    return any(
        _opens(step.script, block, scope, made)
        and (ring.block not in path or path.index(block) < path.index(ring.block))
        for path, scope in paths
        for block in path
    )


def _is_short(owner: ast.AST) -> bool:
    """Over a few turns, or left early by a break."""
    if not isinstance(owner, ast.For | ast.While | ast.AsyncFor):
        return True
    if any(isinstance(node, ast.Break) for node in ast.walk(owner)):
        return True
    match owner:
        case ast.For(iter=ast.Subscript(slice=ast.Slice())):
            return True
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
        if environ and not _is_sometimes(call.path) and (_sets(call) or _is_given(script, call)):
            yield call.node


def _is_given(script: Script, call: Call) -> bool:
    """os.environ.update(ENV), where ENV is written out in this file."""
    given = call.node.args[0] if call.tail == "update" and call.node.args else None
    if not isinstance(given, ast.Name):
        return False
    entries = [store for scope in script.facts.scopes for store in scope.stores.get(f"{given.id}.{_BLOCKING}", ())]
    whole = [end.node for end in script.trace.origins(given, call.scope) if isinstance(end.node, ast.Dict)]
    return any(_is_one(store.value) and not _is_sometimes(store.path) for store in entries) or any(map(_writes, whole))


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
