"""Values that surely carry no graph: what a copy of them drops is nothing."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import Block, Call, Scope, Store, dotted
from torchtriage.examine.source.flow import reaching
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.tensors import is_batches
from torchtriage.examine.source.torch_api.families import (
    FACTORIES,
    GRAPH_CUTS,
    GRAPHLESS_FUNCTIONS,
    LIKE_FACTORIES,
    NEW_METHODS,
)
from torchtriage.examine.source.torch_api.symbols import symbols

_DEEP = 12
_OFF = symbols().grad_free
# What gives a tensor without a graph whatever it is given: by name, or since its values are not differentiable.
_ENDS = (GRAPH_CUTS | GRAPHLESS_FUNCTIONS) - NEW_METHODS
_MADE = FACTORIES | LIKE_FACTORIES | {"bernoulli"}


def is_grad_free(script: Script, node: ast.expr | None, at: Call | Store, deep: int = 0) -> bool:
    """Whether NODE, as it is read AT a point, surely has no grad_fn and asks for no gradient."""
    if any(_is_off(script, block, at.scope) for block in at.path):
        return True
    if deep > _DEEP:
        return False
    if isinstance(node, ast.Name):
        return _is_name_free(script, node.id, at, deep)
    if isinstance(node, ast.Call):
        return _is_call_free(script, node, at, deep)
    parts = _parts(node)
    return parts is not None and all(is_grad_free(script, each, at, deep + 1) for each in parts)


def _parts(node: ast.expr | None) -> tuple[ast.expr, ...] | None:
    """What NODE takes a graph from; None where that is not known."""
    match node:
        case ast.Constant() | ast.Compare() | ast.UnaryOp(op=ast.Not() | ast.Invert()):
            return ()
        case ast.Attribute(attr="data" | "shape" | "indices"):
            return ()
        case ast.BinOp(left=one, right=other):
            return one, other
        case ast.Attribute(value=value, attr="T" | "mT" | "values") | ast.UnaryOp(operand=value):
            return (value,)
        case ast.Subscript(value=value):
            return (value,)
    return None


def _is_name_free(script: Script, name: str, at: Call | Store, deep: int) -> bool:
    scope = at.scope
    asked = any(call.tail == "requires_grad_" and dotted(call.receiver) == name for call in scope.calls)
    if asked or f"{name}.requires_grad" in scope.stores or name in scope.outside:
        return False
    stores = reaching(scope.stores.get(name, ()), at)
    return bool(stores) and all(_is_stored_free(script, store, deep) for store in stores)


def _is_stored_free(script: Script, store: Store, deep: int) -> bool:
    if store.how == "element":
        return store.value is not None and is_batches(script, store.value, store.scope)
    value = store.value
    if store.index is not None and isinstance(value, ast.Tuple | ast.List):
        value = value.elts[store.index] if store.index < len(value.elts) else None
    return store.how in ("assign", "augment") and is_grad_free(script, value, store, deep + 1)


def _is_call_free(script: Script, call: ast.Call, at: Call | Store, deep: int) -> bool:
    name = script.names.resolve(call.func, at.scope)
    head, _, last = name.rpartition(".")
    if head in ("torch", "torch.nn.functional"):
        if last in _ENDS:
            return True
        if last in _MADE:
            return all(each.arg not in ("requires_grad", None) for each in call.keywords)
        parts = [*call.args, *(each.value for each in call.keywords)]
    elif not name and isinstance(call.func, ast.Attribute):
        if call.func.attr in _ENDS or call.func.attr == "requires_grad_":
            return call.func.attr in _ENDS
        parts = [call.func.value, *call.args, *(each.value for each in call.keywords)]
    else:
        return False
    return all(_is_part_free(script, each, at, deep) for each in parts)


def _is_part_free(script: Script, node: ast.expr, at: Call | Store, deep: int) -> bool:
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return all(_is_part_free(script, each, at, deep) for each in parts)
        case ast.Attribute() if script.names.resolve(node, at.scope).startswith("torch."):  # torch.float32
            return True
    return is_grad_free(script, node, at, deep + 1)


def _is_off(script: Script, block: Block, scope: Scope) -> bool:
    if block.kind != "with" or not isinstance(block.owner, ast.With | ast.AsyncWith):
        return False
    managers = [item.context_expr for item in block.owner.items]
    return any(
        isinstance(each, ast.Call) and not each.args and script.names.resolve(each.func, scope) in _OFF
        for each in managers
    )
