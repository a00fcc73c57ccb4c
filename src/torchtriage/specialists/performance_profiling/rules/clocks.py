"""What the source alone shows about speed and its measurement."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.devices import Devices
from torchtriage.examine.source.events import Ring
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.overridden import is_hollow, overriding
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.spans import Span, spans
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

# Each of these waits for the device, or may: the clock then reads the truth.
_SYNCS = names(home="method", trait="sync") | symbols().waits
_READERS = frozenset({"float", "int", "bool", "print", "str", "repr", "sum", "any", "all", "list", "max", "min"})
_HOST = frozenset({f"builtins.{each}" for each in ("isinstance", "len", "hasattr", "getattr", "callable", "range")})
_PRODUCTS = names(trait="lowered") | symbols().heavy_operators
_INDICES = names(dtype="int64") | {"arange"}
_METHODS = names(home="method") & _PRODUCTS
_QUEUED = names(home="method") | {
    "append", "backward", "clear", "eval", "extend", "forward", "get", "keys", "parameters", "scale", "step", "train",
    "update", "zero_grad",
}  # fmt: skip
"""Methods of tensors, modules, optimizers and lists, none of which waits; those that do are asked for before."""


@detector("source/timing-without-sync")
def timing_without_sync(script: Script) -> Iterator[Sighting]:
    """The clock is read around work on an accelerator without waiting for it."""
    seen: set[int] = set()
    for span in spans(script):
        if id(span.closing) not in seen and (work := _unawaited(span)) is not None:
            seen.add(id(span.closing))
            yield script.seen(
                span.closing.node,
                f"the clock is read without synchronize(): the work of line {work.lineno} is only queued by then",
            )


def _unawaited(span: Span) -> ast.expr | None:
    devices = Devices(span.script)
    if any(_may_wait(span, devices, call) for call in span.calls()):
        return None
    if not all(_is_count(each) for each in span.iterables()):
        return None
    work: list[ast.expr] = [
        call.node for call in span.calls() if _is_work(span, devices, call) or _runs(span, devices, call)
    ]
    work += [
        node for node, scope in span.products()
        if devices.is_moved(node.left, scope) or devices.is_moved(node.right, scope)
    ]  # fmt: skip
    return work[0] if work and not _decides(span, devices) and not _is_launch(span) else None


def _may_wait(span: Span, devices: Devices, call: Call) -> bool:
    name = span.script.name(call)
    scaled = call.tail == "step" and span.script.roles.plays(call.receiver, call.scope, "scaler")
    leaves = call.tail == "to" and _may_leave(span, devices, call)
    if call.tail in _SYNCS or scaled or leaves or _is_replaced(span.script, call):
        return True
    if name.startswith("builtins."):
        return call.tail in _READERS and not all(isinstance(each, ast.Constant) for each in call.arguments)
    if name.startswith(("math.", "random.")):
        return any(not _is_size(each) for each in call.arguments)
    known = name.startswith(("torch.", "time.")) or span.script.trace.definition(call.node.func, call.scope) is not None
    module = span.script.roles.plays(call.node.func, call.scope, "model") or devices.is_moved(
        call.node.func, call.scope
    )
    if known or (module and not name):
        return False
    if call.receiver is None and (targets := span.targets(call)):
        return any(_may_wait(span, devices, each) for scope in targets for each in _written(span, scope))
    # model.test(z, labels) of a package, which fits scikit-learn on the host
    return call.receiver is None or bool(name) or call.tail not in _QUEUED


def _is_replaced(script: Script, call: Call) -> bool:
    """Whether CALL may run a subclass's method, which may wait: one that is empty here, or overridden in this file."""
    method = script.trace.definition(call.node.func, call.scope) if call.receiver is not None else None
    if method is None or method.kind != "function" or method.host is None:
        return False
    others = list(overriding(script.trace, method))
    return len(others) != 1 if is_hollow(method) else bool(others)  # the one that fills an empty method is written out


def _is_size(node: ast.expr) -> bool:
    """A number that the host knows: a constant, a size, a part of a shape."""
    match node:
        case ast.Call(func=ast.Attribute(attr="size" | "dim" | "numel")) | ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Subscript(value=ast.Attribute(attr="shape")) | ast.Constant():
            return True
        case ast.BinOp(left=left, right=right):
            return _is_size(left) and _is_size(right)
    return False


def _written(span: Span, function: Scope) -> Iterator[Call]:
    for event in span.script.written.events(Ring(function.body, function)):
        if event.call is not None:
            yield event.call


def _runs(span: Span, devices: Devices, call: Call) -> bool:
    """Whether a function that is called by a name which only holds it computes on an accelerator."""
    known = span.script.trace.definition(call.node.func, call.scope) is not None
    if call.receiver is not None or known or span.script.name(call):
        return False
    targets = span.targets(call)
    given = any(devices.is_moved(each, call.scope) for each in call.arguments if not isinstance(each, ast.Starred))
    return any(
        _is_work(span, devices, each) or (given and each.tail in _PRODUCTS)
        for scope in targets
        for each in _written(span, scope)
    ) or any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        and (given or devices.is_moved(node.left, scope) or devices.is_moved(node.right, scope))
        for scope in targets
        for node in ast.walk(scope.node)
    )  # fmt: skip


def _may_leave(span: Span, devices: Devices, call: Call) -> bool:
    """Whether .to(…) may be a copy to the host: its target is neither a dtype nor surely an accelerator."""
    goals = [keyword.value for keyword in call.node.keywords if keyword.arg == "device"] or call.node.args[:1]
    return any(
        not devices.is_accelerator(goal, call.scope) and not span.script.names.resolve(goal, call.scope)
        for goal in goals
    )


def _decides(span: Span, devices: Devices) -> bool:
    """Whether Python may have to wait for a tensor's value: `if torch.isnan(out).any():`, out[out > 0], f"{loss}"."""
    made = {store.name.partition(".")[0] for store in span.stores() if not _is_plain(store) and not _is_index(store)}
    return any(
        any(_is_on_device(span, devices, made, node, scope) for node in ast.walk(decided))
        for decided, scope in span.decisions()
    )


def _is_plain(store: Store) -> bool:
    if store.how == "element":
        return store.value is not None and _is_count(store.value)
    return store.how in ("assign", "augment") and isinstance(store.value, ast.Constant)


def _is_index(store: Store) -> bool:
    """Whole numbers that only select: a tensor indexed by them stays where it is."""
    value = store.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _INDICES:
        return True
    return isinstance(value, ast.List | ast.Dict)


def _is_on_device(span: Span, devices: Devices, made: set[str], node: ast.AST, scope: Scope) -> bool:
    if isinstance(node, ast.Call):
        return span.script.names.resolve(node.func, scope) not in _HOST
    name = dotted(node)
    stores = scope.stores.get(name, [])
    if stores and all(_is_index(store) for store in stores):
        return False
    return bool(name) and isinstance(node, ast.expr) and (name in made or devices.is_moved(node, scope))


def _is_launch(span: Span) -> bool:
    """Whether the same start is read again after a wait: the time to queue the work against the time to do it."""
    return any(
        each.opening is span.opening and len(each.events) > len(span.events)
        and any(call.tail in _SYNCS for call in each.calls())
        for each in spans(span.script)
    )  # fmt: skip


def _is_count(iterable: ast.expr) -> bool:
    """A loop over a loader waits for data anyway, and over an epoch the queue's last milliseconds do not matter."""
    return isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id in _RANGES


_RANGES = frozenset({"range", "trange"})


def _is_work(span: Span, devices: Devices, call: Call) -> bool:
    name = span.script.name(call)
    if span.script.roles.plays(call.node.func, call.scope, "model") or (call.receiver is None and not name):
        known = span.script.roles.plays(call.node.func, call.scope, "model")
        moved = [call.node.func, *(call.node.args if known else ())]
    elif call.tail in _PRODUCTS and name.startswith("torch."):
        moved = call.node.args
    elif call.receiver is not None and not name and (call.tail in _METHODS or call.tail == "backward"):
        moved = [call.receiver]
    else:
        return False
    return any(devices.is_moved(each, call.scope) for each in moved)
