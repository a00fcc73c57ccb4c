"""Where a loss is reached only through an operation that has no gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, dotted
from torchtriage.examine.source.nets import Net, nets
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import training_steps
from torchtriage.examine.source.torch_api.symbols import symbols
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
from torchtriage.specialists.custom_autograd_functions.rules.terms import Terms


@detector("source/no-gradient-by-design")
def no_gradient_by_design(script: Script) -> Iterator[Sighting]:
    """The loss is reached from the model only through an operation that has no gradient."""
    told: set[int] = set()
    steps = tuple(training_steps(script))
    for backward in (each for step in steps for each in step.backwards):
        if backward.root is not None and backward.call.scope.kind != "lambda":
            root = Point(backward.root, backward.call.scope, backward.call)
            yield from _cut_terms(script, root, f"the backward of line {backward.call.node.lineno}", told)
    if steps:
        yield from _layers(script, told)
    yield from _in_frameworks(script, told)


def _in_frameworks(script: Script, told: set[int]) -> Iterator[Sighting]:
    """The same for the loss that a framework propagates."""
    for scope in script.classes:
        word = _loss_method(script.trace.bases(scope))
        method = scope.inner.get(word)
        for end in method.returns if method is not None else ():
            value = _loss_of(end.node.value)
            if method is not None and value is not None:
                yield from _cut_terms(script, Point(value, method, end), f"the backward of what {word} returns", told)


def _loss_method(bases: set[str]) -> str:
    """The method that gives a framework the loss."""
    if "pytorch_lightning.LightningModule" in bases:
        return "training_step"
    return "compute_loss" if any(base in ("transformers.Trainer", "trl.SFTTrainer") for base in bases) else ""


def _loss_of(node: ast.expr | None) -> ast.expr | None:
    match node:
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return next((v for k, v in pairs if isinstance(k, ast.Constant) and k.value == "loss"), None)
        case ast.IfExp(orelse=other):  # (loss, outputs) if return_outputs else loss
            return other
        case ast.Tuple(elts=[first, *_]):
            return first
    return node


def _cut_terms(script: Script, root: Point, by: str, told: set[int]) -> Iterator[Sighting]:
    """The cut of the whole loss; else those of single terms of it that the model is reached from through a cut only."""
    whole = only(Follower(script).ways(root))
    terms = [root] if whole is not None else list(Terms(script).terms(root))
    for term in terms:
        cut = whole or only(Follower(script).ways(term))
        if cut is None or id(cut.node) in told:
            continue
        told.add(id(cut.node))
        word = word_of(cut.node)
        if isinstance(cut.node, ast.Call) and tail_of(cut.node) in ZERO:
            only_here = "" if whole is not None else " from this term"
            fact = f"the gradient of {word} is zero everywhere: {by} gives the model zeros only{only_here}"
        elif whole is not None:
            fact = (
                f"{word} has no gradient, and the loss has no other way to the model: {by} raises "
                "RuntimeError, or leaves the model without gradients"
            )
        else:
            fact = f"{word} has no gradient: this term of the loss teaches the model nothing ({by})"
        yield script.seen(cut.node, fact)


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


def _layers(script: Script, told: set[int]) -> Iterator[Sighting]:
    """The layers of a module that its forward uses only through an operation without a gradient."""
    for net in nets(script):
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
    if words & (symbols().grad_switches | {"requires_grad_", "register_hook"}):
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
