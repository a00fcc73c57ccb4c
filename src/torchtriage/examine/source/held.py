"""What a name in a function holds where it is used: an input as it was given, memory shared with one, no tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.source.classes import FunctionClass
from torchtriage.examine.source.facts import Action, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.returned import gives_tensor
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.switches import Flags, given_flags, is_in_place, is_switched_off
from torchtriage.examine.source.torch_api.families import ALIAS_ATTRIBUTES, LIKE_FACTORIES, RESHAPES
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import symbols

_DEEP = 8

# What gives a tensor that shares its memory with the tensor it is asked of (contiguous: where that is contiguous).
_HARMLESS = symbols().harmless_methods
_VIEWS = RESHAPES | {"detach"}


# Methods that tensors have, and arrays, modules, numbers and sets have not.
TENSOR_METHODS = symbols().tensor_methods
# Functions of torch whose first argument is a tensor.
_FUNCTIONS = (names(home="torch") & names(home="method")) | names(home="functional") | LIKE_FACTORIES


class Edited(Struct, frozen=True):
    """Something that is changed in place. node: where; by: the call or store that does it.

    is_sure: whether only a tensor can be changed so (x.mul_(2)); x += 1 and x[0] = 1 say nothing of what x is.
    """

    target: ast.expr
    by: Action
    is_sure: bool

    @property
    def node(self) -> ast.AST:
        return self.by.node


def edits(script: Script, scope: Scope, flags: Flags | None = None, deep: int = 0) -> Iterator[Edited]:
    """Everything that SCOPE's own body changes in place, in order, or a function of this file that it calls.

    FLAGS: the values of parameters that switch this. What waits for another value, or an unknown one, is left out.
    """
    for action in scope.actions:
        if flags and is_switched_off(scope, action, flags):
            continue
        if isinstance(action, Call):
            target = _edited_by(script, action)
            if target is not None and not _is_onto_itself(target, action):
                yield Edited(target, action, is_sure=True)
            elif target is None and deep < 2:
                yield from _edited_inside(script, action, deep)
        elif action.how == "augment" or (action.name.endswith("[]") and action.how == "assign"):
            yield from (Edited(target, action, is_sure=False) for target in _stored_to(action))


def _edited_inside(script: Script, call: Call, deep: int) -> Iterator[Edited]:
    """Those arguments of CALL that the function of this file which it calls changes in place."""
    helper = script.trace.definition(call.node.func, call.scope) if call.arguments else None
    if helper is None or helper.kind != "function" or helper is call.scope or helper.name == "__init__":
        return
    words = [each.arg for each in helper.parameters]
    words = words[1:] if helper.receiver in words[:1] else words
    told: set[str] = set()
    for inner in edits(script, helper, given_flags(helper, call, words), deep + 1):
        found = shared(inner.target, helper, inner.by)
        if found is None or found.name not in words or found.name in told:
            continue
        told.add(found.name)
        target = call.argument(found.name, words.index(found.name))
        if target is not None and not isinstance(target, ast.Starred):
            yield Edited(target, call, inner.is_sure)


def _is_onto_itself(target: ast.expr, call: Call) -> bool:
    """x.copy_(x)"""
    return target is call.receiver and [dotted(each) for each in call.node.args] == [dotted(target) or "?"]


def _edited_by(script: Script, call: Call) -> ast.expr | None:
    tail = call.tail
    if (
        tail.endswith("_")
        and not tail.startswith("_")
        and not tail.endswith("__")
        and tail not in symbols().harmless_methods
    ):
        real = script.name(call)
        if real.startswith("torch."):
            return call.argument("input", 0)
        return call.receiver if not real else None
    for keyword in call.node.keywords:
        if keyword.arg == "out" and script.name(call).startswith("torch."):
            return keyword.value
    return call.argument("input", 0) if is_in_place(script, call) else None


def _stored_to(store: Store) -> Iterator[ast.expr]:
    match store.node:
        case ast.AugAssign(target=ast.Subscript(value=target)) | ast.AugAssign(target=target):
            yield target
        case ast.Assign(targets=targets):
            for target in targets:
                if isinstance(target, ast.Subscript) and f"{dotted(target.value)}[]" == store.name:
                    yield target.value


def given(node: ast.expr, scope: Scope, at: Spot, deep: int = 0) -> Store | None:
    """The parameter of SCOPE whose own object NODE surely is at AT."""
    if not isinstance(node, ast.Name) or deep > _DEEP:
        return None
    found = {id(each): each for each in (_given(store, deep) for store in _reaching(node.id, scope, at)) if each}
    every = all(_given(store, deep) is not None for store in _reaching(node.id, scope, at))
    return next(iter(found.values())) if every and len(found) == 1 else None


def _given(store: Store, deep: int) -> Store | None:
    if store.how == "parameter":
        return store
    whole = store.how == "assign" and store.index is None and isinstance(store.value, ast.Name)
    return given(store.value, store.scope, store, deep + 1) if whole and store.value is not None else None


def shared(node: ast.expr, scope: Scope, at: Spot, deep: int = 0) -> Store | None:
    """The parameter of SCOPE whose memory NODE surely is, or is a part of, at AT: given, or a view of it."""
    match node:
        case ast.Attribute(value=value, attr=attr) if attr in ALIAS_ATTRIBUTES:
            return shared(value, scope, at, deep)
        case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in _VIEWS:
            return shared(value, scope, at, deep)
        case ast.Subscript(value=value, slice=index) if _is_basic(index, scope):
            return shared(value, scope, at, deep)
        case ast.Name(id=name) if deep <= _DEEP:
            ways = [_shared(store, deep) for store in _reaching(name, scope, at)]
            known = [way for way in ways if way is not None]
            return known[0] if known and len(known) == len(ways) and all(way is known[0] for way in known) else None
    return None


def _shared(store: Store, deep: int) -> Store | None:
    if store.how == "parameter":
        return store
    # what a loop takes out of a tensor is a part of it, and so is each element of *grads
    whole = store.how in ("assign", "element") and store.index is None and store.value is not None
    return shared(store.value, store.scope, store, deep + 1) if whole and store.value is not None else None


def _is_basic(index: ast.expr, scope: Scope) -> bool:
    """Whether an index gives a view: numbers and slices. A mask or a list of places gives a copy."""
    match index:
        case ast.Tuple(elts=parts):
            return all(_is_basic(each, scope) for each in parts)
        case ast.Name(id=name):  # for i in range(n)
            stores = scope.stores.get(name, [])
            return bool(stores) and all(_is_counter(each) for each in stores)
    return isinstance(index, ast.Slice) or (isinstance(index, ast.Constant) and index.value is not True)


def _is_counter(store: Store) -> bool:
    if store.how != "element" or not isinstance(store.value, ast.Call):
        return False
    word = dotted(store.value.func)
    return (word == "range" and store.index is None) or (word == "enumerate" and store.index == 0)


def _reaching(name: str, scope: Scope, at: Spot) -> list[Store]:
    if name in scope.outside:
        return []
    return reaching([store for store in scope.stores.get(name, ()) if store.how != "augment"], at)


class Inputs:
    """The inputs of an autograd function, as its forward and setup_context know them."""

    def __init__(self, function: FunctionClass) -> None:
        self.function, self.script = function, function.script
        self.setup = function.setup
        self.scopes = [function.forward, *([self.setup] if self.setup is not None else [])]

    def context(self, scope: Scope) -> str:
        """What SCOPE calls ctx; "" where it has none."""
        plain = scope is self.function.forward and self.setup is not None
        return "" if plain or not scope.parameters else scope.parameters[0].arg

    def at(self, node: ast.expr, scope: Scope, at: Spot) -> ast.arg | None:
        """The input that NODE surely is, as it was given."""
        found = given(node, scope, at)
        if scope is self.function.forward:
            return next((each for each in self.function.inputs if found is not None and each is found.node), None)
        match node:
            case ast.Subscript(value=whole, slice=ast.Constant(value=int(place))):
                return self._placed(whole, scope, at, place)
            case ast.Name(id=name):
                ways = _reaching(name, scope, at)
                if len(ways) == 1 and ways[0].index is not None and ways[0].value is not None:
                    return self._placed(ways[0].value, scope, ways[0], ways[0].index)
        return None

    def unpacked(self, store: Store) -> ast.arg | None:
        """The input that STORE takes out of what setup_context is given: ctx.x, ctx.scale = inputs."""
        if store.index is None or store.value is None or store.scope is self.function.forward:
            return None
        return self._placed(store.value, store.scope, store, store.index)

    def _placed(self, whole: ast.expr, scope: Scope, at: Spot, place: int) -> ast.arg | None:
        found = given(whole, scope, at)
        taken = found is not None and len(scope.parameters) > 1 and found.node is scope.parameters[1]
        return self.function.inputs[place] if taken and 0 <= place < len(self.function.inputs) else None

    def is_output(self, node: ast.expr, scope: Scope, at: Spot) -> bool:
        """Whether NODE is a tensor that forward returns."""
        if not isinstance(node, ast.Name):
            return False
        if scope is not self.function.forward:
            found = given(node, scope, at)
            return found is not None and len(scope.parameters) > 2 and found.node is scope.parameters[2]
        ways = _reaching(node.id, scope, at)
        returned = any(_returns(each.node.value, node.id) for each in scope.returns)
        alone = all(isinstance(each.node.value, ast.Name) for each in scope.returns)
        later = [store for store in scope.stores.get(node.id, ()) if store.order > at.order and store.how != "augment"]
        is_made = all(self.makes_tensor(store) or (alone and self._is_whole(store)) for store in ways)
        return returned and not later and bool(ways) and is_made

    def _is_whole(self, store: Store) -> bool:
        """Whether a store holds what some call gave: returned alone, and with a gradient, that is a tensor."""
        is_call = store.how == "assign" and store.index is None and isinstance(store.value, ast.Call)
        return is_call and any(self.has_gradient(each) for each in self.function.inputs)

    def makes_tensor(self, store: Store) -> bool:
        """Whether a store surely gives a tensor that was not there before."""
        if store.how != "assign" or store.index is not None or store.value is None:
            return False
        return self._is_made(store.value, store.scope, store)

    def _is_made(self, node: ast.expr, scope: Scope, at: Spot) -> bool:
        match node:
            case ast.Call(func=ast.Attribute(attr=attr)):
                name = self.script.names.resolve(node.func, scope)
                if name.startswith("torch."):
                    return gives_tensor(name)
                return attr in TENSOR_METHODS & names(home="method", returns="tensor") and not name
            case ast.BinOp(op=ast.MatMult()):
                return True
            case ast.BinOp(left=left, right=right):
                return any(self._is_made(each, scope, at) or self._known(each, scope, at) for each in (left, right))
            case ast.Name(id=name):
                ways = _reaching(name, scope, at)
                return bool(ways) and all(each.order < at.order and self.makes_tensor(each) for each in ways)
        return False

    def _known(self, node: ast.expr, scope: Scope, at: Spot) -> bool:
        found = self.at(node, scope, at)
        return found is not None and self.is_tensor(found)

    def is_tensor(self, argument: ast.arg) -> bool:
        """Whether ARGUMENT surely is a tensor: by its annotation, or by what forward does with it."""
        note = argument.annotation
        if isinstance(note, ast.BinOp):  # Tensor | None
            note = note.left
        if isinstance(note, ast.Subscript):  # Optional[Tensor]
            note = note.slice
        if self.script.names.resolve(note, self.function.scope) in symbols().tensor_classes:
            return True
        return note is None and (self.is_used(argument) or self.has_gradient(argument))

    def is_used(self, argument: ast.arg) -> bool:
        """Whether forward or setup_context does with ARGUMENT what can be done with tensors only."""
        return any(self._used(argument, scope) for scope in self.scopes)

    def has_gradient(self, argument: ast.arg) -> bool:
        """Whether backward surely gives ARGUMENT a gradient: torch allows that for tensors only. A buffer gets None."""
        place = next(i for i, each in enumerate(self.function.inputs) if each is argument)
        counted = [gradients for _, gradients in self.function.gradients()]
        return bool(counted) and all(
            len(each) > place and not _is_none(each[place], self.function.backward) for each in counted
        )

    def _used(self, argument: ast.arg, scope: Scope) -> bool:
        for call in scope.calls:
            if any(self.at(each, scope, call) is argument for each in self._tensors(call)):
                return True
        return any(
            isinstance(side, ast.Name) and side.id == argument.arg
            for node in ast.walk(scope.node)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            for side in (node.left, node.right)
        )

    def _tensors(self, call: Call) -> list[ast.expr]:
        """Those arguments and the receiver of CALL that can only be tensors."""
        if call.tail == "save_for_backward":
            return call.node.args
        name = self.script.name(call)
        if name.startswith("torch."):
            return call.node.args[: 2 if call.tail in _PAIRS else 1] if call.tail in _FUNCTIONS else []
        is_own = call.tail in TENSOR_METHODS - symbols().shared_methods or _edited_by(self.script, call) is not None
        return [call.receiver] if is_own and call.receiver is not None else []


_PAIRS = names(trait="lowered") | {"outer", "ger", "mv", "dot"}


def _is_none(node: ast.expr, backward: Scope) -> bool:
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name):
            stores = backward.stores.get(name, [])
            return bool(stores) and all(
                store.how == "assign" and isinstance(store.value, ast.Constant) and store.value.value is None
                for store in stores
            )
    return False


def _returns(node: ast.expr | None, name: str) -> bool:
    match node:
        case ast.Name(id=own):
            return own == name
        case ast.Tuple(elts=parts):
            return any(_returns(part, name) for part in parts)
    return False
