"""What the backward method of an autograd function returns: the gradients, counted."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.source.facts import Return, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.operators import Home, names
from torchtriage.examine.source.torch_api.symbols import symbols

# Methods of a tensor that give one tensor.
_ONE = names(home="method", returns="tensor")


_HOMES: dict[str, Home] = {
    "torch": "torch",
    "torch.nn.functional": "functional",
    "torch.fft": "fft",
    "torch.special": "special",
}


def gives_tensor(name: str) -> bool:
    """Whether the function with that real NAME gives one tensor: torch.exp, not torch.split."""
    home, _, word = name.rpartition(".")
    if name in symbols().tensor_classes or name == "torch.where":  # which gives indices for a condition alone
        return True
    return home in _HOMES and word in names(home=_HOMES[home], returns="tensor")


class Gradients(Struct, frozen=True):
    """The gradients that BACKWARD returns, where they can be counted."""

    script: Script
    backward: Scope

    def each(self) -> Iterator[tuple[Return, list[ast.expr]]]:
        """The returns that can be counted, and their gradients."""
        for each in self.backward.returns:
            counted = self._counted(each.node.value, each)
            if counted is not None:
                yield each, counted

    def _counted(self, node: ast.expr | None, at: Return) -> list[ast.expr] | None:
        parts = self._spread(node, at)
        if parts is not None and not isinstance(node, ast.List):  # torch takes a tuple, no list
            return parts
        match node:
            case ast.BinOp() | ast.UnaryOp() | ast.Subscript() | ast.IfExp() if self._is_tensor(node):
                return [node]
            case ast.Call():
                return [node] if self._is_tensor(node) else self._of_helper(node)
            case ast.Name(id=name):
                return self._named(name, node, at)
        return None

    def _of_helper(self, node: ast.Call) -> list[ast.expr] | None:
        """What a function of this file returns, when all its returns give equally many."""
        helper = self.script.trace.definition(node.func, self.backward)
        if helper is None or helper.kind != "function" or not helper.returns or helper is self.backward:
            return None
        values = [each.node.value for each in helper.returns]
        if not all(isinstance(value, ast.Tuple) for value in values):
            return None
        counted = [spread(value) for value in values]
        same = {len(each) for each in counted if each is not None}
        return counted[0] if None not in counted and len(same) == 1 else None

    def _spread(self, node: ast.expr | None, at: Return) -> list[ast.expr] | None:
        """The elements of a tuple that is written out, or of a list that was filled before: tuple(grads)."""
        match node:
            case ast.Call(func=ast.Name(id="tuple"), args=[ast.Name(id=name)]):
                return self._filled(name, at)
            case ast.Tuple(elts=[ast.Starred(value=ast.Name(id=name)), *rest]) if not any(
                isinstance(each, ast.Starred) for each in rest
            ):
                filled = self._filled(name, at)
                return None if filled is None else [*filled, *rest]
        return spread(node)

    def _filled(self, name: str, at: Return) -> list[ast.expr] | None:
        """The elements of the list NAME: as it was written, and what was appended to it on every way to AT."""
        stores = self.backward.stores.get(name, [])
        if len(stores) != 1 or stores[0].how != "assign" or stores[0].index is not None or self._escapes(name):
            return None
        parts = spread(stores[0].value)
        if parts is None:
            return None
        added = []
        for call in self.backward.calls:
            if dotted(call.receiver) == name:
                is_sure = call.tail == "append" and len(call.node.args) == 1 and call.order < at.order
                if not is_sure or len(call.path) > 1:
                    return None
                added.append(call.node.args[0])
        return [*parts, *added]

    def _escapes(self, name: str) -> bool:
        """Whether the list NAME is handed to anything that might fill it."""
        return any(
            isinstance(each, ast.Name) and each.id == name and call.tail not in ("tuple", "len", "print")
            for call in self.backward.calls
            for each in call.arguments
        )

    def _is_tensor(self, node: ast.expr | None, through: tuple[str, ...] = ()) -> bool:
        """Whether NODE is surely one tensor: what backward was given, or arithmetic on it.

        A sum or product of anything else may be a tuple: gradients + (None,) * n.
        """
        match node:
            case ast.BinOp(left=left, op=op, right=right):
                summed = isinstance(op, ast.Add | ast.Mult)
                return not summed or any(self._is_tensor(each, through) for each in (left, right))
            case ast.UnaryOp():
                return True
            case ast.IfExp(body=one, orelse=other):
                parts = [each for each in (one, other) if not _is_none(each)]
                return bool(parts) and all(self._is_tensor(each, through) for each in parts)
            case ast.Call(func=ast.Attribute(value=value, attr=attr) as called):
                is_torchs = gives_tensor(self.script.names.resolve(called, self.backward))
                return is_torchs or (attr in _ONE and self._is_tensor(value, through))
            case ast.Subscript(value=value, slice=index):
                is_one = _is_saved(value, self.backward) and isinstance(index, ast.Constant)
                return is_one or self._is_tensor(value, through)
        return isinstance(node, ast.Name) and self._is_one(node.id, through)

    def _is_one(self, name: str, through: tuple[str, ...]) -> bool:
        """Whether every store to NAME surely gives it one tensor, or None."""
        if name in through or name in starred(self.backward):
            return False
        stores = self.backward.stores.get(name, [])
        some = [store for store in stores if not (store.how == "augment" or _is_none(store.value))]
        return bool(some) and all(self._is_given(store, (*through, name)) for store in stores)

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
        if name in starred(self.backward):
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


def spread(node: ast.expr | None) -> list[ast.expr] | None:
    """The elements of a tuple that is written out: (a, b), (a, *[None] * 2), (a,) + (None,) * 2."""
    match node:
        case ast.Call(func=ast.Name(id="tuple"), args=[ast.Tuple() | ast.List() | ast.BinOp() as inner]):
            return spread(inner)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(times))):
            parts = spread(left)
            return None if parts is None else parts * times
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            one, other = spread(left), spread(right)
            return None if one is None or other is None else [*one, *other]
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            inside = [spread(each.value) if isinstance(each, ast.Starred) else [each] for each in parts]
            return None if None in inside else [each for some in inside for each in some or ()]
    return None


def starred(function: Scope) -> set[str]:
    """The names of *args and **kwargs of FUNCTION."""
    node = function.node
    if not isinstance(node, ast.FunctionDef):
        return set()
    return {each.arg for each in (node.args.vararg, node.args.kwarg) if each is not None}
