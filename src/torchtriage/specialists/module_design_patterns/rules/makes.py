"""Which expressions are tensors that the code at hand makes itself, and puts on no device."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import Scope, Store
from torchtriage.examine.source.nets import Net, chain
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.families import DIMENSION_KEEPING, FACTORIES
from torchtriage.examine.source.torch_api.operators import names
from torchtriage.examine.source.torch_api.symbols import last_words, symbols

_MAKERS = FACTORIES | last_words(symbols().tensor_classes)
# Functions and methods that make a tensor of a tensor, and keep it a whole one.
KEEP = DIMENSION_KEEPING | {"where", "meshgrid"}
_DEEP = 6


def is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def given(store: Store) -> ast.expr | None:
    """What STORE gives its name: of a, b = x, y the part at its place; None where a call is unpacked."""
    match store:
        case Store(index=int() as place, value=ast.Tuple(elts=parts) | ast.List(elts=parts)):
            return parts[place] if place < len(parts) else None
    return store.value if store.index is None else None


def is_tensor(script: Script, store: Store, through: tuple[object, ...] = ()) -> bool:
    """Whether STORE gives its name a tensor of at least one dimension, made in this file and put on no device."""
    if store.how != "assign" or store in through or len(through) > _DEEP:
        return False
    through = (*through, store)
    value = given(store)
    if value is not None:
        return _is_tensor(script, value, store.scope, through)
    helper = script.trace.definition(store.value.func, store.scope) if isinstance(store.value, ast.Call) else None
    returned = [each.node.value for each in helper.returns] if helper is not None and helper.kind == "function" else []
    place = store.index or 0
    parts = [each.elts[place] for each in returned if isinstance(each, ast.Tuple) and place < len(each.elts)]
    whole = helper is not None and bool(parts) and len(parts) == len(returned)
    return whole and all(_is_tensor(script, each, helper, through) for each in parts if helper is not None)


def _is_tensor(script: Script, node: ast.expr | None, scope: Scope, through: tuple[object, ...]) -> bool:
    match node:
        case ast.Call() as call:
            made = _is_made(script, call, scope) or _is_kept(script, call, scope, through)
            return made or _is_returned(script, call, scope, through)
        case ast.BinOp(left=left, right=right):
            return any(_is_tensor(script, each, scope, through) for each in (left, right))
        case (
            ast.Compare(left=inner)
            | ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=inner)
            | ast.Subscript(value=inner, slice=ast.Slice() | ast.Tuple())
        ):
            return _is_tensor(script, inner, scope, through)
        case ast.Name(id=name):
            stores = [each for each in scope.stores.get(name, ()) if each.how != "augment"]
        case ast.Attribute(value=ast.Name(id=root), attr=name) if root == scope.receiver and scope.host is not None:
            stores = [each for each in scope.host.attributes.get(name, ()) if each.how != "augment"]
        case _:
            stores = []
    stores = [each for each in stores if each not in through]  # bar = bar / bar[0]: what it was before tells
    return bool(stores) and all(is_tensor(script, each, through) for each in stores)


def _is_returned(script: Script, call: ast.Call, scope: Scope, through: tuple[object, ...]) -> bool:
    """Whether a function of this file returns such a tensor, whatever it is given."""
    helper = script.trace.definition(call.func, scope)
    if helper is None or helper.kind != "function" or not helper.returns or len(through) > _DEEP:
        return False
    return all(_is_tensor(script, each.node.value, helper, (*through, helper)) for each in helper.returns)


def _is_made(script: Script, call: ast.Call, scope: Scope) -> bool:
    name = script.names.resolve(call.func, scope)
    space, _, last = name.rpartition(".")
    if space != "torch" or last not in _MAKERS or any(each.arg in ("device", None) for each in call.keywords):
        return False
    first = call.args[0] if call.args else None
    if last in names(trait="converts") - {"from_numpy"}:
        many = isinstance(first, ast.List | ast.ListComp | ast.Tuple) or _is_sequence(first, scope)
        return many or _is_constant(script, first, scope) or _is_counted(first, scope)
    return not (isinstance(first, ast.List | ast.Tuple) and not first.elts)


def _is_constant(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    """Whether NODE is the name of a list or tuple that is written out: MEAN = (0.5, 0.4, 0.4)."""
    stores = script.names.stores(node.id, scope) if isinstance(node, ast.Name) else []
    return bool(stores) and all(isinstance(given(each), ast.List | ast.Tuple) for each in stores)


def _is_counted(node: ast.expr | None, scope: Scope) -> bool:
    """Whether NODE is a parameter that the function counts, or goes through: len(anchors), for a in anchors."""
    if not isinstance(node, ast.Name) or any(each.how != "parameter" for each in scope.stores.get(node.id, ())):
        return False
    counted = (call.node.args for call in scope.calls if call.tail in ("len", "zip", "enumerate", "sorted", "sum"))
    return any(isinstance(each, ast.Name) and each.id == node.id for args in counted for each in args)


def _is_sequence(node: ast.expr | None, scope: Scope) -> bool:
    """Whether NODE is a parameter whose default is a list or tuple."""
    made = scope.node
    if not isinstance(node, ast.Name) or not isinstance(made, ast.FunctionDef):
        return False
    plain = [*made.args.posonlyargs, *made.args.args]
    defaults = [*reversed(made.args.defaults)]
    pairs = [
        *zip(reversed(plain), defaults, strict=False),
        *zip(made.args.kwonlyargs, made.args.kw_defaults, strict=False),
    ]
    given = any(each.arg == node.id and isinstance(value, ast.List | ast.Tuple) for each, value in pairs)
    return given and all(store.how == "parameter" for store in scope.stores.get(node.id, ()))


def _is_kept(script: Script, call: ast.Call, scope: Scope, through: tuple[object, ...]) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in KEEP:
        return False
    if script.names.resolve(call.func, scope).startswith("torch."):
        first = call.args[0] if call.args else None
        inside = first.elts if isinstance(first, ast.List | ast.Tuple) else [first]
        return any(_is_tensor(script, each, scope, through) for each in inside)
    if call.func.attr in ("view", "reshape") and len(call.args) > 1 and _is_copied(script, call.func.value, scope):
        return True
    return _is_tensor(script, call.func.value, scope, through)


def _is_copied(script: Script, node: ast.expr, scope: Scope) -> bool:
    """Whether NODE is torch.tensor(x) without a device, whatever x is: numbers, as far as it is used as meant."""
    if not isinstance(node, ast.Call) or script.names.resolve(node.func, scope) not in ("torch.tensor", "torch.Tensor"):
        return False
    return len(node.args) == 1 and not any(each.arg in ("device", None) for each in node.keywords)


def learns(script: Script, store: Store) -> bool:
    """Whether STORE makes a tensor that asks for gradients, on whatever device."""
    inner, methods = chain(given(store))
    if not isinstance(inner, ast.Call):
        return False
    name = script.names.resolve(inner.func, store.scope)
    asked = any(
        each.arg == "requires_grad" and isinstance(each.value, ast.Constant) and each.value.value is True
        for each in inner.keywords
    )
    return name.startswith("torch.") and name[6:] in _MAKERS and (asked or "requires_grad_" in methods)


def only_built(net: Net, stores: list[Store]) -> bool:
    """Whether only the constructor, or a method that nothing else calls, makes STORES, and none in a loop or with."""
    for store in stores:
        sites = net.script.trace.sites(store.scope) if store.scope is not net.init else ()
        own = store.scope is net.init or (bool(sites) and all(site.scope is net.init for site in sites))
        if not own or any(block.kind in ("with", "loop") for block in store.path):
            return False
    return bool(stores)
