"""What the source alone shows about a loss that has lost its graph before backward."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.names import table
from torchtriage.examine.source.roles import Part
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.examine.source.torch_api.families import (
    DETACHING,
    DIFFERENTIABLE,
    LIKE_FACTORIES,
    SIZED_FACTORIES,
)
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.debugging_techniques.rules.values import Value, default, entries, is_off, returned, use

# Where the graph was lost; "none" for what never had one (a number, a batch); None for what cannot be known.
Lost: TypeAlias = ast.expr | Literal["none"] | None

_DEEP, _WIDE = 16, 60
_COPIES = frozenset({"torch.tensor", "torch.from_numpy", *symbols().tensor_classes})
_BY_CLASS = symbols().class_losses
_LEAVES = DETACHING | names(home="method", returns="value", trait="sync")
# Methods and functions of torch whose result has the graph of what they are given.
_KEEPS = DIFFERENTIABLE | {"as_tensor"}  # of a tensor
# What makes a tensor of its own, with no graph unless that is asked for.
_FRESH = frozenset(f"torch.{name}" for name in SIZED_FACTORIES | LIKE_FACTORIES)
_CHOOSING = symbols().choosing_methods
_TARGETS = frozenset({"y", "target", "targets", "label", "labels", "y_true", "tgt", "gt"})
_SETS = frozenset({"requires_grad_", "retain_grad"})


@detector("source/loss-detached")
def loss_detached(step: TrainingStep) -> Iterator[Sighting]:
    """Backward is called on a loss that has no graph any more."""
    if not any(step.calls("zero_grad")) and not step.optimizing():
        return
    follow = _Follow(step.script)
    for backward in step.backwards:
        root = backward.root
        if backward.call.node.args and not step.script.name(backward.call):  # out.backward(gradient): no loss
            continue
        if root is None and isinstance(backward.call.receiver, ast.Call):  # criterion(…).backward()
            root = backward.call.receiver
        lost = follow.lost(use(backward.call, root)) if root is not None else None
        if isinstance(lost, ast.expr):
            yield step.script.seen(lost, _fact(step.script, backward, lost, off=id(lost) in follow.off))


def _fact(script: Script, backward: Backward, lost: ast.expr, *, off: bool) -> str:
    line = backward.call.node.lineno
    start = "no graph is recorded here" if off else f"{_short(script, lost)} has the value and not the graph"
    if _is_asked(script, backward, lost):
        return f"{start}: the backward of line {line} ends there, without an error, and no parameter gets a gradient"
    return f"{start}: the backward of line {line} raises, since its loss does not require grad"


def _short(script: Script, node: ast.expr) -> str:
    text = script.source(node)
    return text if len(text) <= _WIDE else f"{text[:_WIDE]}…"


def _is_asked(script: Script, backward: Backward, lost: ast.expr) -> bool:
    """Whether somebody sets requires_grad on what has no graph: then backward does not even raise."""
    if isinstance(lost, ast.Call) and any(k.arg == "requires_grad" for k in lost.keywords):
        return True
    name = dotted(backward.root)
    scope = backward.call.scope
    sets = (call for call in script.calls("requires_grad_") if call.scope is scope)
    return f"{name}.requires_grad" in scope.stores or any(_is_said_of(call.receiver, name, lost) for call in sets)


def _is_said_of(receiver: ast.expr | None, name: str, lost: ast.expr) -> bool:
    return dotted(receiver) == name or any(node is lost for node in ast.walk(receiver or ast.Pass()))


class _Follow:
    """Follows a loss back to where its graph ends, through every way that it may have come."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.lore: dict[str, list[str]] = table()["graph"]
        self.open: set[int] = set()
        self.off: set[int] = set()

    def lost(self, value: Value, deep: int = 0) -> Lost:
        """Where the graph of VALUE ends; also marks in `off` what is computed where none is recorded."""
        found = self._lost(value, deep) if deep <= _DEEP else None
        computed = found is None and self._is_computed(value.node, value.scope)
        if computed and is_off(self.script, value.spot.path, value.scope):
            self.off.add(id(value.node))
            return value.node
        return found

    def _lost(self, value: Value, deep: int) -> Lost:
        node = value.node
        found: Lost = None
        match node:
            case ast.Constant():
                found = "none"
            case ast.Name():
                found = self._named(node.id, value, deep)
            case ast.BinOp(left=left, right=right):
                found = self._both([left, right], value, deep)
            case ast.Subscript(value=inner, slice=ast.Constant(value=str(key))):
                ways = entries(self.script, value.at(inner), key)
                found = self._all(self.lost(way, deep + 1) for way in ways) if ways else None
            case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner):
                found = self.lost(value.at(inner), deep + 1)
            case ast.Attribute(attr="data"):
                found = node
            case ast.Call():
                found = self._called(node, value, deep)
        return found

    def _named(self, name: str, value: Value, deep: int) -> Lost:
        stores = self.script.names.stores(name, value.scope)
        if not stores or any(store.scope is not value.scope for store in stores):
            return None
        return self._all(self._stored(store, deep) for store in reaching(stores, value.spot))

    def _parameter(self, store: Store, deep: int) -> Lost:
        """What the callers in this file give; a number that is the default; of a target, surely no graph."""
        words = [each.arg for each in store.scope.parameters]
        place = words.index(store.name) - (1 if store.scope.receiver in words[:1] else 0)
        ways: list[Lost] = []
        for call in self.script.trace.sites(store.scope):
            argument = call.argument(store.name, place)
            is_number = argument is None and isinstance(default(store.scope, store.name), ast.Constant)
            ways.append("none" if is_number else self.lost(use(call, argument), deep + 1) if argument else None)
        if not ways and self._is_number(store):
            return "none"
        found = self._all(ways)
        return "none" if found is None and store.name in _TARGETS else found

    def _is_number(self, store: Store) -> bool:
        """Whether a parameter without callers, beta=0.1, is surely no tensor that is learned."""
        learned = (
            node.id
            for call in store.scope.calls
            if self.script.name(call).startswith("torch.optim.")
            for node in ast.walk(call.node)
            if isinstance(node, ast.Name)
        )
        return isinstance(default(store.scope, store.name), ast.Constant) and store.name not in learned

    def _stored(self, store: Store, deep: int) -> Lost:
        if id(store) in self.open:  # a sum that goes round a loop: as its other parts are
            return "none"
        self.open.add(id(store))
        found = self._of_store(store, deep)
        self.open.discard(id(store))
        return found

    def _of_store(self, store: Store, deep: int) -> Lost:
        if store.how == "element":
            return "none"
        if store.how == "parameter":
            return self._parameter(store, deep)
        if store.value is None or store.how not in ("assign", "augment"):
            return None
        if store.index is not None:
            return self._unpacked(store, store.value, store.index, deep)
        here = Value(store.value, store.scope, store)
        given = self.lost(here, deep + 1)
        return self._sum([given, self._named(store.name, here, deep + 1)]) if store.how == "augment" else given

    def _unpacked(self, store: Store, value: ast.expr, index: int, deep: int) -> Lost:
        """A part of a tuple that is written there, or that a function of this file returns."""
        if isinstance(value, ast.Tuple | ast.List):
            part = value.elts[index] if index < len(value.elts) else None
            return self.lost(Value(part, store.scope, store), deep + 1) if part is not None else None
        ways = returned(self.script, Value(value, store.scope, store, store, index))
        return self._all(self.lost(way, deep + 1) for way in ways) if ways else None

    def _is_computed(self, node: ast.expr, scope: Scope) -> bool:
        """Whether NODE surely makes a new tensor: arithmetic, a loss, or the output of a model."""
        if any(self.script.calls("enable_grad", "set_grad_enabled")):
            return False
        if isinstance(node, ast.BinOp):
            return True
        if not isinstance(node, ast.Call):
            return False
        name = self.script.names.resolve(node.func, scope)
        losses = {f"torch.nn.functional.{each}" for each in self.lore["losses"]}
        if name in losses:
            return True
        if name.startswith("torch.") and name.islower() and name.rpartition(".")[2] in _KEEPS - {"as_tensor"}:
            return True
        roles = ("criterion", "model")
        return not name and any(self._parts(node, scope, role) for role in roles)

    def _parts(self, node: ast.Call, scope: Scope, role: str) -> list[Part]:
        return [part for part in self.script.roles.parts(node.func, scope) if part.role == role]

    def _called(self, node: ast.Call, value: Value, deep: int) -> Lost:
        name = self.script.names.resolve(node.func, value.scope)
        if name in _COPIES and node.args:
            return "none" if self._is_plain(node.args[0]) else node
        if name in _FRESH and not any(keyword.arg == "requires_grad" for keyword in node.keywords):
            return "none"
        if name == "torch.autograd.Variable" and node.args:
            asked = any(keyword.arg == "requires_grad" for keyword in node.keywords)
            return node if asked or self.lost(value.at(node.args[0]), deep + 1) not in (None, "none") else None
        if name.startswith("torch.") and self._keeps(name.rpartition(".")[2], *self.lore["losses"]):
            return self._both(node.args[: 1 if name in _BY_CLASS else None], value, deep)
        if isinstance(node.func, ast.Attribute) and not name:
            return self._method(node.func, node, value, deep)
        return self._criterion(node, value, deep)

    def _keeps(self, word: str, *others: str) -> bool:
        """Whether WORD is an operation of torch whose result has the graph of what it is given."""
        return word in _KEEPS or word in self.lore["methods"] or word in others

    def _method(self, called: ast.Attribute, node: ast.Call, value: Value, deep: int) -> Lost:
        if called.attr in _LEAVES:
            return node
        if called.attr in _SETS or self._keeps(called.attr):
            others = [] if called.attr in _CHOOSING else node.args  # those only say what is taken
            return self._both([called.value, *others], value, deep)
        return self._criterion(node, value, deep)

    def _criterion(self, node: ast.Call, value: Value, deep: int) -> Lost:
        if self._parts(node, value.scope, "criterion") and len(node.args) == 2 and not node.keywords:
            made = self.script.roles.made(node.func, value.scope, "criterion")
            by_class = all(part.name in _BY_CLASS for part in made)  # what comes second are indices
            return self._both(node.args[: 1 if by_class else 2], value, deep) if made else None
        ways = returned(self.script, value)
        return self._all(self.lost(way, deep + 1) for way in ways) if ways else None

    def _is_plain(self, node: ast.expr) -> bool:
        """Whether NODE is written out in numbers."""
        return all(
            isinstance(each, ast.Constant | ast.List | ast.Tuple | ast.UnaryOp | ast.Load | ast.USub)
            for each in ast.walk(node)
        )

    def _both(self, nodes: Iterable[ast.expr], value: Value, deep: int) -> Lost:
        return self._sum([self.lost(value.at(node), deep + 1) for node in nodes])

    def _sum(self, parts: list[Lost]) -> Lost:
        """Of what is computed from several: without a graph only when no part has one."""
        if None in parts:
            return None
        for part in parts:
            if isinstance(part, ast.expr):
                return part
        return "none"

    def _all(self, ways: Iterable[Lost]) -> Lost:
        """Of what may come one way or the other: lost only when it is on every way."""
        found = list(ways)
        if not found or not all(isinstance(way, ast.expr) or way == "none" for way in found):
            return None
        for way in found:
            if isinstance(way, ast.expr):
                return way
        return "none"
