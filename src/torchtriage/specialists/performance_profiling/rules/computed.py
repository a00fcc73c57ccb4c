"""What of a training step is a tensor on the device: what its models give, and all that follows from it."""

from __future__ import annotations

import ast

from torchtriage.examine.source.devices import Devices
from torchtriage.examine.source.facts import Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.families import METADATA, VALUE_METHODS

_HOST = VALUE_METHODS | {"cpu", "keys", "append", "format", "index", "count", "save", "get_lr", "state_dict"}
_FACTS = METADATA
_THROUGH = frozenset({"sum", "max", "min", "list", "dict", "tuple", "zip", "enumerate", "abs", "reversed", "sorted"})
_IDENTITY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_DEEP = 24


class Computed:
    """Whether a value is on the device, where a step of a training reads it."""

    def __init__(self, step: TrainingStep) -> None:
        self.step, self.script, self.devices = step, step.script, Devices(step.script)
        self._calls = [event.call for event in step.events if event.call is not None]
        self._known: dict[int, bool] = {}
        self._open = 0
        for backward in step.backwards:
            if isinstance(backward.root, ast.Name):
                for store in self._reaching(backward.root.id, backward.call.scope, backward.call):
                    self._known[id(store)] = store.how != "augment"

    def __call__(self, node: ast.expr | None, scope: Scope, at: Spot) -> bool:
        """Whether NODE, as SCOPE reads it AT that point, is a tensor on the device, or holds one."""
        if node is None or self._open > _DEEP:
            return False
        self._open += 1
        found = self._is(node, scope, at)
        self._open -= 1
        return found

    def _is(self, node: ast.expr, scope: Scope, at: Spot) -> bool:
        match node:
            case ast.Name():
                return self._named(node, scope, at)
            case ast.Call():
                return self._called(node, scope, at)
            case ast.Attribute(value=value, attr=attr):
                return attr not in _FACTS and (self._kept(dotted(node), scope) or self(value, scope, at))
            case ast.Subscript():
                return self._entry(node, scope, at)
            case ast.Compare(ops=ops) if all(isinstance(each, _IDENTITY) for each in ops):
                return False
        return any(self(each, scope, at) for each in _parts(node))

    def _named(self, node: ast.Name, scope: Scope, at: Spot) -> bool:
        if (run := self.script.facts.bound.get(id(node))) is not None:
            return self._stored(run)
        return any(self._stored(each) for each in self._reaching(node.id, scope, at))

    def _entry(self, node: ast.Subscript, scope: Scope, at: Spot) -> bool:
        ends = [each for each in self.script.trace.origins(node, scope) if each.node is not node]
        if ends:
            return any(each.call is not None and self._called(each.call, each.scope, at) for each in ends)
        return self._kept(dotted(node), scope) or self(node.value, scope, at)

    def _called(self, node: ast.Call, scope: Scope, at: Spot) -> bool:
        roles, name = self.script.roles, self.script.names.resolve(node.func, scope)
        if self.devices.is_move(node, scope) or any(_is_unblocked(each) for each in node.keywords):
            held = node.func.value if isinstance(node.func, ast.Attribute) else None
            return not roles.plays(held, scope, "model")
        if roles.plays(node.func, scope, "model"):
            return True
        if name.startswith("torch.") or roles.plays(node.func, scope, "criterion"):
            like = [
                each.value for each in node.keywords if each.arg == "device" and isinstance(each.value, ast.Attribute)
            ]
            return any(self(each, scope, at) for each in (*node.args, *(part.value for part in like)))
        own = self.script.trace.definition(node.func, scope)
        if own is not None:
            return own.kind == "function" and self._returned(own, None)
        if name.startswith("builtins."):
            given = (*node.args, *(each.value for each in node.keywords))
            return name.rpartition(".")[2] in _THROUGH and any(self(each, scope, at) for each in given)
        return not name and self._method(node, scope, at)

    def _method(self, node: ast.Call, scope: Scope, at: Spot) -> bool:
        if not isinstance(node.func, ast.Attribute) or node.func.attr in _HOST:
            return False
        return not (node.func.attr == "to" and _is_host(node)) and self(node.func.value, scope, at)

    def _returned(self, function: Scope, index: int | None) -> bool:
        for each in function.returns:
            value = each.node.value
            if isinstance(value, ast.Tuple) and index is not None:
                value = value.elts[index] if index < len(value.elts) else None
            if self(value, function, each):
                return True
        return False

    def _stored(self, store: Store) -> bool:
        if id(store) not in self._known:
            self._known[id(store)] = False  # a name that is computed from itself
            self._known[id(store)] = self._made(store)
        return self._known[id(store)]

    def _made(self, store: Store) -> bool:
        if store.how == "parameter":
            return self._given(store)
        value = store.value
        if store.how == "element" and store.node is self.step.ring.block.owner:
            return False
        if store.index is not None and isinstance(value, ast.Tuple) and store.how == "assign":
            value = value.elts[store.index] if store.index < len(value.elts) else None
        if store.index is not None and store.how == "assign" and isinstance(value, ast.Call):
            own = self.script.trace.definition(value.func, store.scope)
            if own is not None and own.kind == "function":
                return self._returned(own, store.index)
        if store.how == "element":
            return self(_gone_through(store), store.scope, store)
        earlier = store.how == "augment" and self._is_before(store)
        return store.how in ("assign", "augment") and (earlier or self(value, store.scope, store))

    def _is_before(self, store: Store) -> bool:
        """Whether what an augmented assignment adds to is on the device already."""
        return any(self._stored(each) for each in self._reaching(store.name, store.scope, store))

    def _given(self, store: Store) -> bool:
        """What the step's own calls give for a parameter."""
        words = [each.arg for each in store.scope.parameters]
        place = words.index(store.name) - (store.scope.receiver in words[:1])
        return any(
            self(call.argument(store.name, place), call.scope, call)
            for call in self._calls
            if call.tail in (store.scope.name, store.scope.host.name if store.scope.host else "")
            and self.script.trace.definition(call.node.func, call.scope) is store.scope
        )

    def _reaching(self, name: str, scope: Scope, at: Spot) -> list[Store]:
        home = self.script.names.home(name, scope)
        if home is None:
            return []
        entries = home.stores.get(f"{name}[]", [])
        return [*(reaching(home.stores[name], at) if home is scope else home.stores[name]), *entries]

    def _kept(self, name: str, scope: Scope) -> bool:
        """Whether self.NAME, or an entry under a key that is written out, is given such a value somewhere."""
        root, dot, rest = name.partition(".")
        if not dot:
            return False
        if root == scope.receiver and scope.host is not None:
            stores = scope.host.attributes.get(rest, [])
        else:
            stores = scope.stores.get(name, [])
        return any(self._stored(each) for each in stores)


def _is_unblocked(given: ast.keyword) -> bool:
    return given.arg == "non_blocking" and isinstance(given.value, ast.Constant) and given.value.value is True


def _gone_through(store: Store) -> ast.expr | None:
    match store.value:
        case ast.Call(func=ast.Attribute(value=whole, attr="items"), args=[]):
            return whole if store.index == 1 else None
        case ast.Call(func=ast.Attribute(value=whole, attr="values"), args=[]):
            return whole
        case ast.Call(func=ast.Name(id="enumerate"), args=[whole, *_]):
            return whole if store.index == 1 else None
        case ast.Call(func=ast.Attribute(attr="parameters" | "named_parameters" | "modules")):
            return None
    return store.value


def _is_host(call: ast.Call) -> bool:
    """.to("cpu")."""
    goals = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "device")]
    return any(
        (isinstance(each, ast.Constant) and each.value == "cpu")
        or (isinstance(each, ast.Call) and dotted(each.func).endswith("device") and _is_host(each))
        for each in goals
    )


def _parts(node: ast.expr) -> list[ast.expr]:
    """What a value is computed from, or holds."""
    names = _FIELDS.get(type(node), ())
    found: list[ast.expr] = []
    for name in names:
        value = getattr(node, name)
        found.extend(value if isinstance(value, list) else [value])
    return found


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.Starred: ("value",),
    ast.NamedExpr: ("value",),
    ast.Await: ("value",),
    ast.IfExp: ("body", "orelse"),
    ast.BoolOp: ("values",),
    ast.List: ("elts",),
    ast.Tuple: ("elts",),
    ast.Set: ("elts",),
    ast.Dict: ("values",),
    ast.ListComp: ("elt",),
    ast.GeneratorExp: ("elt",),
    ast.SetComp: ("elt",),
    ast.DictComp: ("value",),
    ast.Compare: ("left", "comparators"),
}
