"""Whether the turns of a training loop have batches of their own, and what one batch does many times."""

from __future__ import annotations

import ast

from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import SPLITS
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

_SAME = (names(home="method", returns="tensor") | SPLITS) - names(trait="random") - {"cpu"} | {"items", "values"}
_COMPOUND = (ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.List, ast.Dict, ast.Starred, ast.Slice)
_CHANCE = ("rand", "normal", "multinomial", "bernoulli", "poisson", "empty")
_PARAMETERS = symbols().module_parts | {"param_groups"}


def is_full_batch(step: TrainingStep) -> bool:
    """Whether each turn gives its models the same tensors again: an epoch is one step, and few figures cost nothing."""
    given = [event.call for event in step.events if event.call is not None and _is_forward(step, event.call)]
    same = _Same(step)
    return bool(given) and all(same(each, call.scope) for call in given for each in call.arguments)


def _is_forward(step: TrainingStep, call: Call) -> bool:
    return bool(call.arguments) and step.script.roles.plays(call.node.func, call.scope, "model")


class _Same:
    """Whether a value is the same in every turn of a step, as far as the file shows."""

    def __init__(self, step: TrainingStep) -> None:
        self.step, self.script = step, step.script
        self._facts = {id(event.fact) for event in step.events}
        self._calls = [event.call for event in step.events if event.call is not None]
        self._known: dict[int, bool] = {}

    def __call__(self, node: ast.expr | None, scope: Scope) -> bool:
        match node:
            case None | ast.Constant():
                return True
            case ast.Name():
                return self._named(node, scope)
            case ast.Attribute(value=value):
                return self._kept(node, scope) and self(value, scope)
            case ast.Call():
                return self._called(node, scope)
            case (
                ast.Subscript()
                | ast.BinOp()
                | ast.UnaryOp()
                | ast.Tuple()
                | ast.List()
                | ast.Dict()
                | ast.Starred()
                | ast.Slice()
            ):
                return all(self(each, scope) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr))
        return False

    def _named(self, node: ast.Name, scope: Scope) -> bool:
        home = self.script.names.home(node.id, scope)
        stores = [] if home is None else [*home.stores[node.id], *home.stores.get(f"{node.id}[]", ())]
        return id(node) not in self.script.facts.bound and all(map(self._stored, stores))

    def _kept(self, node: ast.Attribute, scope: Scope) -> bool:
        root, _, rest = dotted(node).partition(".")
        if scope.host is None or root != scope.receiver or not rest:
            return True
        return all(map(self._stored, scope.host.attributes.get(rest, ())))

    def _called(self, node: ast.Call, scope: Scope) -> bool:
        name = self.script.names.resolve(node.func, scope)
        given = all(self(each, scope) for each in (*node.args, *(each.value for each in node.keywords)))
        if name.startswith("torch."):
            return given and not any(word in name.rpartition(".")[2] for word in _CHANCE)
        return isinstance(node.func, ast.Attribute) and node.func.attr in _SAME and self(node.func.value, scope)

    def _stored(self, store: Store) -> bool:
        if id(store) not in self._known:
            self._known[id(store)] = True  # a name that is computed from itself
            self._known[id(store)] = self._is_same(store)
        return self._known[id(store)]

    def _is_same(self, store: Store) -> bool:
        if store.how == "parameter":
            return self._given(store)
        if store.node is self.step.ring.block.owner:
            return False
        if id(store) not in self._facts:
            return True
        return store.how == "assign" and self(store.value, store.scope)

    def _given(self, store: Store) -> bool:
        """What the step's own calls give for a parameter; one of a function around the loop stays what it is."""
        words = [each.arg for each in store.scope.parameters]
        place = words.index(store.name) - (store.scope.receiver in words[:1])
        return all(
            self(call.argument(store.name, place), call.scope)
            for call in self._calls
            if call.tail in (store.scope.name, store.scope.host.name if store.scope.host else "")
            and self.script.trace.definition(call.node.func, call.scope) is store.scope
        )


class Repeats:
    """What one turn of a step does many times: for each parameter or class, but not for each of its small batches."""

    def __init__(self, step: TrainingStep) -> None:
        self.step, self.script = step, step.script
        batches = {id(block) for each in step.backwards for block in self.inside(each.event) if block.kind == "loop"}
        self.nodes = {
            id(event.fact.node)
            for event in step.events
            if any(block.kind == "loop" and id(block) not in batches for block in self.inside(event))
        }

    def inside(self, event: Event) -> tuple[Block, ...]:
        """The blocks of the turn that lead to EVENT; none where it runs before the loop."""
        ring = self.step.ring.block
        return event.path[event.path.index(ring) + 1 :] if ring in event.path else ()

    def holds(self, call: Call) -> bool:
        """Whether a loop, or a comprehension over the parameters, repeats CALL."""
        if id(call.node) in self.nodes:
            return True
        runs = (self.script.facts.bound.get(id(each)) for each in ast.walk(call.node) if isinstance(each, ast.Name))
        return any(run is not None and _goes_through_parameters(run.value) for run in runs)


def selects(inside: tuple[Block, ...], arm: Block) -> bool:
    """Whether ARM only selects among the parameters that a loop of this turn goes through: if p.grad is not None."""
    if not isinstance(arm.owner, ast.If):
        return False
    chosen: set[str] = set()
    for block in inside[: inside.index(arm)]:
        if isinstance(block.owner, ast.For) and _goes_through_parameters(block.owner.iter):
            chosen |= {each.id for each in ast.walk(block.owner.target) if isinstance(each, ast.Name)}
    asked = {each.id for each in ast.walk(arm.owner.test) if isinstance(each, ast.Name)}
    return bool(chosen) and asked <= chosen


def _goes_through_parameters(node: ast.expr | None) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="enumerate" | "list"), args=[inner, *_]):
            return _goes_through_parameters(inner)
        case ast.Call(func=ast.Attribute(attr=attr)):
            return attr in _PARAMETERS
    return False
