"""Classes that torch gives a meaning to: modules and autograd functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import view
from torchtriage.examine.source.facts import Call, Return, Scope, Store, dotted
from torchtriage.examine.source.script import Script

# Methods of a tensor that give one tensor.
_ONE = frozenset(
    {"abs", "add", "bfloat16", "bmm", "clamp", "clone", "contiguous", "div", "double", "exp", "expand", "expand_as"}
    | {"flatten", "float", "half", "masked_fill", "matmul", "mean", "mm", "mul", "neg", "permute", "pow", "reshape"}
    | {"sign", "sqrt", "squeeze", "sub", "sum", "t", "to", "transpose", "type_as", "unsqueeze", "view", "view_as"}
)


# Functions of torch that give one tensor.
_TORCHS = frozenset(
    f"torch.{name}"
    for name in (
        _ONE - {"float", "half", "double", "bfloat16", "to", "type_as", "view", "view_as", "expand", "expand_as"}
    )
    | {"where", "zeros_like", "ones_like", "empty_like", "zeros", "einsum", "cat", "stack", "sigmoid", "sin", "cos"}
) | {"torch.nn.functional.pad", "torch.nn.functional.fold", "torch.nn.functional.conv2d"}


class ModuleClass(Struct, frozen=True):
    """A subclass of nn.Module, directly or through classes of the same file."""

    script: Script
    scope: Scope

    @property
    def methods(self) -> list[Scope]:
        return [scope for scope in self.script.facts.scopes if scope.host is self.scope]

    def calls(self, *tails: str) -> Iterator[Call]:
        """The calls in its methods whose last word is one of TAILS."""
        yield from (call for method in self.methods for call in method.calls if call.tail in tails)

    def contents(self, name: str) -> Iterator[tuple[ast.expr, Scope, Store | Call]]:
        """What self.NAME holds when it is a plain list, dict or tuple: each element, and where it was put in.

        Nothing, when any store makes it something else.
        """
        stores = self.scope.attributes.get(name, [])
        held = [(store, list(self._elements(_whole(store), store.scope))) for store in stores]
        if any(not self._is_plain(_whole(store), store.scope) for store in stores if store.how == "assign"):
            return
        for store, elements in held:
            yield from ((element, store.scope, store) for element in elements)
        for call in self.calls("append", "extend", "insert"):
            if dotted(call.receiver) == f"{call.scope.receiver}.{name}" and call.node.args:
                last = call.node.args[-1]
                inside = list(self._elements(last, call.scope)) if call.tail == "extend" else [last]
                yield from ((element, call.scope, call) for element in inside)
        for store in self.scope.attributes.get(f"{name}[]", []):
            if store.value is not None and store.how == "assign":
                yield store.value, store.scope, store

    def _is_plain(self, node: ast.expr | None, scope: Scope, through: tuple[str, ...] = ()) -> bool:
        match node:
            case ast.List() | ast.Tuple() | ast.Dict() | ast.ListComp() | ast.DictComp():
                return True
            case ast.Call(func=ast.Name(id="list" | "dict" | "tuple" | "OrderedDict" | "defaultdict")):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="collections"), attr="OrderedDict" | "defaultdict")):
                return True
            case ast.BinOp(left=ast.List(), op=ast.Mult()):  # [None] * n, to be filled in
                return True
            case ast.Name(id=name) if name not in through:
                stores = [store for store in self.script.names.stores(name, scope) if store.how != "augment"]
                return bool(stores) and all(
                    self._is_plain(store.value, store.scope, (*through, name)) for store in stores
                )
        return False

    def _elements(self, node: ast.expr | None, scope: Scope, through: tuple[str, ...] = ()) -> Iterator[ast.expr]:
        match node:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
                for part in parts:
                    yield from self._nested(part, scope, through)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.DictComp(value=part):
                yield from self._nested(part, scope, through)
            case ast.Call(func=ast.Name(id="map"), args=[ast.Lambda(body=part), *_]):
                yield part
            case ast.Call(func=ast.Name(id="list" | "dict" | "tuple"), args=arguments, keywords=keywords):
                yield from (keyword.value for keyword in keywords)
                for argument in arguments:
                    yield from self._elements(argument, scope, through)
            case ast.BinOp(left=left, right=right):
                yield from (*self._elements(left, scope, through), *self._elements(right, scope, through))
            case ast.Name(id=name) if name not in through:
                yield from self._local(name, scope, (*through, name))

    def _nested(self, part: ast.expr, scope: Scope, through: tuple[str, ...]) -> Iterator[ast.expr]:
        """PART of a container, or what it holds itself: [(nn.Linear(2, 2), nn.ReLU()) for _ in range(3)]."""
        if isinstance(part, ast.List | ast.Tuple | ast.Dict):
            yield from self._elements(part, scope, through)
        else:
            yield part

    def _local(self, name: str, scope: Scope, through: tuple[str, ...]) -> Iterator[ast.expr]:
        for store in scope.stores.get(name, ()):
            if not isinstance(store.value, ast.Name):
                yield from self._elements(store.value, scope, through)
        for call in scope.calls:
            if call.tail == "append" and dotted(call.receiver) == name:
                yield from call.node.args


def _whole(store: Store) -> ast.expr | None:
    """What STORE gives its name: of a, b = x, y the part at its place, None where it is not seen."""
    match store:
        case Store(index=int() as place, value=ast.Tuple(elts=parts) | ast.List(elts=parts)):
            return parts[place] if place < len(parts) else None
    return store.value if store.index is None else None


class FunctionClass(Struct, frozen=True):
    """A subclass of torch.autograd.Function with its own forward and backward."""

    script: Script
    scope: Scope
    forward: Scope
    backward: Scope

    @property
    def inputs(self) -> list[ast.arg]:
        """What forward takes, without ctx."""
        skipped = 0 if "setup_context" in self.scope.inner else 1
        return list(self.forward.parameters[skipped:])

    @property
    def optional(self) -> int:
        """How many of the inputs have a default."""
        return len(self._arguments.defaults)

    @property
    def is_open(self) -> bool:
        """Whether the number of inputs is only known at the call: *args, **kwargs."""
        return bool(self._arguments.vararg or self._arguments.kwarg or self._arguments.kwonlyargs)

    @property
    def decorators(self) -> set[str]:
        """The real names of the decorators of forward and backward; "" for one that is not known."""
        return {
            self.script.names.resolve(each.func if isinstance(each, ast.Call) else each, self.scope)
            for method in (self.forward, self.backward)
            if isinstance(method.node, ast.FunctionDef)
            for each in method.node.decorator_list
        }

    def gradients(self) -> Iterator[tuple[Return, list[ast.expr]]]:
        """The returns of backward whose gradients can be counted, and the gradients."""
        for each in self.backward.returns:
            counted = self._counted(each.node.value, each)
            if counted is not None:
                yield each, counted

    @property
    def _arguments(self) -> ast.arguments:
        node = self.forward.node
        return node.args if isinstance(node, ast.FunctionDef) else ast.arguments([], [], None, [], [], None, [])

    def _counted(self, node: ast.expr | None, at: Return) -> list[ast.expr] | None:
        parts = _spread(node)
        if parts is not None and not isinstance(node, ast.List):  # torch takes a tuple, no list
            return parts
        match node:
            case ast.BinOp() | ast.UnaryOp() | ast.Call() if self._is_tensor(node):
                return [node]
            case ast.Name(id=name):
                return self._named(name, node, at)
        return None

    def _is_tensor(self, node: ast.expr, through: tuple[str, ...] = ()) -> bool:
        """Whether NODE is surely one tensor: what backward was given, or arithmetic on it.

        A sum or product of anything else may be a tuple: gradients + (None,) * n.
        """
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                summed = isinstance(op, ast.Add | ast.Mult)
                return not summed or any(self._is_tensor(each, through) for each in (left, right))
            case ast.UnaryOp():
                return True
            case ast.Call(func=ast.Attribute(value=value, attr=attr) as called):
                is_torchs = self.script.names.resolve(called, self.backward) in _TORCHS
                return is_torchs or (attr in _ONE and self._is_tensor(value, through))
            case ast.Subscript(value=value, slice=index):
                return _is_saved(value, self.backward) and isinstance(index, ast.Constant)
            case ast.Name(id=name) if name not in through and name not in _starred(self.backward):
                stores = self.backward.stores.get(name, [])
                some = [store for store in stores if not (store.how == "augment" or _is_none(store.value))]
                return bool(some) and all(self._is_given(store, (*through, name)) for store in stores)
        return False

    def _is_given(self, store: Store, through: tuple[str, ...]) -> bool:
        if store.how == "parameter":
            return store.name != self.backward.parameters[0].arg
        if store.how == "augment":
            return True
        if store.how != "assign" or store.value is None:
            return False
        if _is_saved(store.value, self.backward):  # what is unpacked of it is a tensor, or None
            return store.index is not None
        return store.index is None and (_is_none(store.value) or self._is_tensor(store.value, through))

    def _named(self, name: str, node: ast.expr, at: Return) -> list[ast.expr] | None:
        stores = self.backward.stores.get(name, [])
        variable = _starred(self.backward)
        if name in variable:
            return None
        if len(stores) != 1:
            return [node] if self._is_tensor(node) else None
        store = stores[0]
        if store.how == "parameter":
            return [node]
        whole = store.how == "assign" and store.index is None
        return self._counted(store.value, at) if whole and not isinstance(store.value, ast.Name) else None


def _is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_saved(node: ast.expr, backward: Scope) -> bool:
    context = backward.parameters[0].arg if backward.parameters else ""
    return dotted(node) == f"{context}.saved_tensors"


def _spread(node: ast.expr | None) -> list[ast.expr] | None:
    """The elements of a tuple that is written out: (a, b), (a, *[None] * 2), (a,) + (None,) * 2."""
    match node:
        case ast.Call(func=ast.Name(id="tuple"), args=[ast.Tuple() | ast.List() | ast.BinOp() as inner]):
            return _spread(inner)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(times))):
            parts = _spread(left)
            return None if parts is None else parts * times
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = _spread(left), _spread(right)
            return None if one is None or other is None else [*one, *other]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            inside = [_spread(each.value) if isinstance(each, ast.Starred) else [each] for each in parts]
            return None if None in inside else [each for some in inside for each in some or ()]
    return None


def _starred(function: Scope) -> set[str]:
    node = function.node
    if not isinstance(node, ast.FunctionDef):
        return set()
    return {each.arg for each in (node.args.vararg, node.args.kwarg) if each is not None}


@view(ModuleClass, of=Script)
def modules(script: Script) -> tuple[ModuleClass, ...]:
    return tuple(
        ModuleClass(script, scope)
        for scope in script.classes
        if any(script.roles.of_class(base) == "model" for base in script.trace.bases(scope))
        or "pytorch_lightning.LightningModule" in script.trace.bases(scope)
    )


@view(FunctionClass, of=Script)
def functions(script: Script) -> tuple[FunctionClass, ...]:
    return tuple(
        FunctionClass(script, scope, scope.inner["forward"], scope.inner["backward"])
        for scope in script.classes
        if {"forward", "backward"} <= scope.inner.keys() and "torch.autograd.Function" in script.trace.bases(scope)
    )
