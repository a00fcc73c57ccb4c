"""What the source alone shows about speed and its measurement."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call
from torchtriage.examine.source.spans import Devices, Span

# Each of these waits for the device, or may: the clock then reads the truth.
_SYNCS = frozenset(
    {"synchronize", "item", "cpu", "tolist", "numpy", "nonzero", "elapsed_time", "barrier", "wait", "wait_stream"}
    | {"block_until_ready", "masked_select", "unique", "allclose", "equal", "is_nonzero", "assert_close", "query"}
)
_READERS = frozenset({"float", "int", "bool", "print", "str", "repr", "sum", "any", "all", "list", "max", "min"})
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "einsum", "conv2d", "addmm", "baddbmm", "linear"})


@detector("source/timing-without-sync")
def timing_without_sync(span: Span) -> Iterator[Sighting]:
    """The clock is read around work on an accelerator without waiting for it."""
    devices = Devices(span.script)
    if any(_may_wait(span, call) for call in span.calls()) or not all(_is_count(each) for each in span.iterables()):
        return
    work: list[ast.expr] = [call.node for call in span.calls() if _is_work(span, devices, call)]
    work += [
        node for node, scope in span.products()
        if devices.is_moved(node.left, scope) or devices.is_moved(node.right, scope)
    ]  # fmt: skip
    if work:
        yield span.script.seen(
            span.closing.node,
            f"the clock is read without synchronize(): the work of line {work[0].lineno} is only queued by then",
        )


def _may_wait(span: Span, call: Call) -> bool:
    name = span.script.name(call)
    if call.tail in _SYNCS or (call.tail == "to" and _mentions_cpu(call)):
        return True
    if name.startswith("builtins."):
        return call.tail in _READERS and not all(isinstance(each, ast.Constant) for each in call.arguments)
    known = name.startswith(("torch.", "time.")) or span.script.trace.definition(call.node.func, call.scope) is not None
    if known or span.script.roles.plays(call.node.func, call.scope, "model"):
        return False
    return call.receiver is None or bool(name)


def _mentions_cpu(call: Call) -> bool:
    return any(isinstance(each, ast.Constant) and each.value == "cpu" for each in call.arguments)


def _is_count(iterable: ast.expr) -> bool:
    """A loop over a loader waits for data anyway, and over an epoch the queue's last milliseconds do not matter."""
    return isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.func.id in _RANGES


_RANGES = frozenset({"range", "trange"})


def _is_work(span: Span, devices: Devices, call: Call) -> bool:
    if span.script.roles.plays(call.node.func, call.scope, "model"):
        moved = [call.node.func, *call.node.args]
    elif call.tail in _PRODUCTS and span.script.name(call).startswith("torch."):
        moved = call.node.args
    else:
        return False
    return any(devices.is_moved(each, call.scope) for each in moved)
