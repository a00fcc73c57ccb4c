"""Where a loss is reached only through an operation that has no gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, dotted
from torchtriage.examine.source.nets import Net, nets
from torchtriage.examine.source.steps import TrainingStep, training_steps
from torchtriage.specialists.custom_autograd_functions.rules.following import (
    NONE,
    ZERO,
    Follower,
    Point,
    Ways,
    only,
    tail_of,
    word_of,
)


@detector("source/no-gradient-by-design")
def no_gradient_by_design(step: TrainingStep) -> Iterator[Sighting]:
    """The loss is reached from the model only through an operation that has no gradient."""
    told: set[int] = set()
    for backward in step.backwards:
        if backward.root is None or backward.call.scope.kind == "lambda":
            continue
        cut = only(Follower(step.script).ways(Point(backward.root, backward.call.scope, backward.call)))
        if cut is not None and id(cut.node) not in told:
            told.add(id(cut.node))
            yield step.script.seen(cut.node, _fact(cut.node, backward.call))
    if next(iter(training_steps(step.script)), None) is step:
        yield from _layers(step, told)


def _fact(cut: ast.expr, backward: Call) -> str:
    word, line = word_of(cut), backward.node.lineno
    if isinstance(cut, ast.Call) and tail_of(cut) in ZERO:
        return f"the gradient of {word} is zero everywhere: the backward of line {line} gives the model zeros only"
    return (
        f"{word} has no gradient, and the loss has no other way to the model: the backward of line {line} raises "
        "RuntimeError, or leaves the model without gradients"
    )


class _ToLayer(Follower):
    """Follows what a forward returns back to one layer of the module's own, through its other layers."""

    def __init__(self, net: Net, layer: str) -> None:
        super().__init__(net.script)
        self.net, self.layer = net, layer

    def _called(self, node: ast.Call, spot: Point) -> Ways:
        own = _own_layer(node.func, spot.scope)
        if own == self.layer or not own or own not in self.net.scope.attributes:
            yield from super()._called(node, spot)
        elif self.script.roles.plays(node.func, spot.scope, "model"):
            yield from self._all([*node.args, *(keyword.value for keyword in node.keywords)], spot)
        else:
            yield from super()._called(node, spot)


def _own_layer(node: ast.expr, scope: Scope) -> str:
    root, _, rest = dotted(node).partition(".")
    return rest if scope.receiver and root == scope.receiver else ""


def _layers(step: TrainingStep, told: set[int]) -> Iterator[Sighting]:
    """The layers of a module that its forward uses only through an operation without a gradient."""
    for net in nets(step.script):
        forward = net.methods.get("forward")
        if forward is None or not forward.returns or not _may_cut(net):
            continue
        for layer in _called_layers(net, forward):
            if layer not in net.scope.attributes or _is_used_elsewhere(net, layer):
                continue
            follower = _ToLayer(net, layer)
            ends = [each for each in forward.returns if each.node.value is not None]
            cut = only(way for end in ends for way in follower.ways(Point(end.node.value, forward, end)))
            if cut is not None and id(cut.node) not in told:
                told.add(id(cut.node))
                is_zero = isinstance(cut.node, ast.Call) and tail_of(cut.node) in ZERO
                lost = "is zero everywhere" if is_zero else "does not exist"
                fact = f"the gradient of {word_of(cut.node)} {lost}: forward gives self.{layer} nothing to learn from"
                yield net.script.seen(cut.node, fact)


def _called_layers(net: Net, forward: Scope) -> list[str]:
    """The attributes that FORWARD, and the methods it calls, call."""
    words = dict.fromkeys(_own_layer(call.node.func, forward) for call in forward.calls)
    for word in list(words):
        helper = net.methods.get(word)
        words |= dict.fromkeys(_own_layer(call.node.func, helper) for call in helper.calls) if helper else {}
    return list(words)


def _may_cut(net: Net) -> bool:
    """Whether a method of NET rounds or compares, and nothing of it is switched off."""
    words = {call.tail for method in net.methods.values() for call in method.calls}
    if words & {"requires_grad_", "no_grad", "set_grad_enabled", "inference_mode", "register_hook"}:
        return False
    compares = (node for method in net.methods.values() for node in ast.walk(method.node))
    return bool(words & (ZERO | NONE)) or any(isinstance(node, ast.Compare) for node in compares)


def _is_used_elsewhere(net: Net, layer: str) -> bool:
    """Whether anything but forward, and what it calls, works with self.LAYER."""
    forward = net.methods["forward"]
    inside = {"__init__", "forward", *(_own_layer(call.node.func, forward) for call in forward.calls)}
    for name, method in net.methods.items():
        if name not in inside and any(isinstance(n, ast.Attribute) and n.attr == layer for n in ast.walk(method.node)):
            return True
    calls = (call for call in net.script.calls(layer) if call.scope.host is not net.scope and call.receiver is not None)
    return any(dotted(call.receiver) != (call.scope.receiver or "?") for call in calls)
