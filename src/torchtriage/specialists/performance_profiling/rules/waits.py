"""What the source alone shows about how often the host waits for the device."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.spans import Devices
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.specialists.performance_profiling.rules.lasting import Turns, turn

_WAITS, _READS = frozenset({"item", "cpu", "tolist", "numpy"}), frozenset({"float", "int", "bool", "print"})
_HOST = frozenset({"size", "dim", "numel", "keys", "nelement", "ndimension", "append", "format", *_WAITS})


@detector("source/sync-bound")
def sync_bound(step: TrainingStep) -> Iterator[Sighting]:
    """Every batch makes the host wait for the device."""
    if not step.ring.is_loop or step.ring.runs_once or b"cuda" not in step.script.text.data:
        return
    turns, computed = Turns(step.script, step.ring), _Computed(step)
    waits = [
        event.call.node
        for event in step.events
        if event.call is not None and computed.is_awaited(event.call) and not turns.is_sometimes(event)
    ]
    lines = sorted({node.lineno for node in waits})
    if lines and not _is_searched(step) and not _is_measured(step) and _is_on_accelerator(step):
        often = f"once (line {lines[0]})" if len(lines) == 1 else f"{len(lines)} times (lines {_words(lines)})"
        fact = f"every {turn(step)} waits for the device {often}"
        yield Sighting(step.script.place(waits[0]), fact, float(len(lines)), "waits for each batch")


def _words(lines: list[int]) -> str:
    return ", ".join(map(str, lines))


def _is_searched(step: TrainingStep) -> bool:
    """Whether the optimizer reads the loss itself: step(closure)."""
    return any(call.arguments for _, call, parts in step.optimizing() if any("LBFGS" in part.name for part in parts))


def _is_measured(step: TrainingStep) -> bool:
    """Whether the loop is a measurement, which must wait: beside a synchronize()."""
    return any(call.scope is step.ring.scope for call in step.script.calls("synchronize"))


def _is_on_accelerator(step: TrainingStep) -> bool:
    """Whether a model that the step calls, or what this model is given, surely is on an accelerator."""
    devices, roles = Devices(step.script), step.script.roles
    return any(
        devices.is_moved(each, call.scope)
        for event in step.events
        if (call := event.call) is not None and roles.plays(call.node.func, call.scope, "model")
        for each in (call.node.func, *call.node.args)
    )


class _Computed:
    """What a step computes with its models: the losses, and all that follows from what a model gives."""

    def __init__(self, step: TrainingStep) -> None:
        self.script = step.script
        self.names = {dotted(backward.root) for backward in step.backwards} - {""}
        for _ in range(2):  # a value that is carried from one turn to the next
            for event in step.events:
                if isinstance(event.fact, Store) and self._is_kept(event.fact):
                    self.names.add(event.fact.name)

    def _is_kept(self, store: Store) -> bool:
        return store.how == "assign" and store.value is not None and self.is_computed(store.value, store.scope)

    def is_awaited(self, call: Call) -> bool:
        """loss.item() and its kin, float(loss), and print(loss)."""
        if call.tail in _WAITS and call.receiver is not None:
            return not call.node.args and self.is_computed(call.receiver, call.scope)
        if call.tail not in _READS or self.script.name(call) != f"builtins.{call.tail}":
            return False
        return any(self.is_computed(part, call.scope) for each in call.arguments for part in _written(each))

    def is_computed(self, node: ast.expr, scope: Scope, deep: int = 0) -> bool:
        return deep < 6 and any(
            dotted(part) in self.names or self._is_output(part, scope) or self.is_computed(part, scope, deep + 1)
            for part in self._parts(node, scope)
        )

    def _is_output(self, node: ast.expr, scope: Scope) -> bool:
        return isinstance(node, ast.Call) and self.script.roles.plays(node.func, scope, "model")

    def _parts(self, node: ast.expr, scope: Scope) -> list[ast.expr]:
        """NODE, where it has a name or calls a model, and of a computation what it computes with."""
        match node:
            case ast.Name() | ast.Attribute():
                return [node] if dotted(node) in self.names else []
            case ast.BinOp(left=left, right=right):
                return [left, right]
            case ast.Subscript(value=value) | ast.UnaryOp(operand=value):
                return [value]
            case ast.Compare(left=left, comparators=others):
                return [left, *others]
            case ast.Call():
                return self._given(node, scope)
        return []

    def _given(self, node: ast.Call, scope: Scope) -> list[ast.expr]:
        if self._is_output(node, scope):
            return [node]
        if self.script.names.resolve(node.func, scope).startswith("torch.") or self._is_criterion(node, scope):
            return node.args
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _HOST:
            return [node.func.value]
        return []

    def _is_criterion(self, node: ast.Call, scope: Scope) -> bool:
        return self.script.roles.plays(node.func, scope, "criterion")


def _written(node: ast.expr) -> list[ast.expr]:
    """What print() must know the value of: its arguments, and what an f-string formats."""
    if isinstance(node, ast.JoinedStr):
        return [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
    return [node]
