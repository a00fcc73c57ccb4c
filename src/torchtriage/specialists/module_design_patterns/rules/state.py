"""Which modules hold weights, and which behave differently in training and in evaluation."""

from __future__ import annotations

import ast

from torchtriage.examine.source.facts import Scope
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols

_CONTAINERS = symbols().containers
_NORMS = symbols().normalizations
_LAYERS = symbols().weight_layers
_MODED = symbols().moded_layers | {"dropout", "dropout2d"}
# What gives the layer that it is given, with its weight computed by a norm.
_NORMED = tuple(symbols().weight_norms)
_DEEP = 6


def holds_weights(script: Script, node: ast.expr | None, scope: Scope, deep: int = 0) -> bool:
    """Whether NODE surely makes a module with weights of its own: a layer, a container, an own class."""
    if not isinstance(node, ast.Call) or deep > _DEEP:
        return False
    name = script.names.resolve(node.func, scope)
    if name in _CONTAINERS:
        return any(holds_weights(script, each, scope, deep + 1) for each in _inside(node))
    if name.startswith(_NORMED):
        return bool(node.args) and holds_weights(script, node.args[0], scope, deep + 1)
    space, _, last = name.rpartition(".")
    if space == "torch.nn":
        return last in _LAYERS or (last in _NORMS and not _is_bare(node, last))
    own = script.trace.definition(node.func, scope) if not name else None
    return own is not None and own.kind == "class" and _class_holds(script, own, deep)


def is_layer(script: Script, node: ast.expr | None, scope: Scope) -> str:
    """The name of torch's layer with weights that NODE makes; "" for anything else."""
    name = script.names.resolve(node.func, scope) if isinstance(node, ast.Call) else ""
    return name.rpartition(".")[2] if name and holds_weights(script, node, scope) else ""


def _class_holds(script: Script, own: Scope, deep: int) -> bool:
    if "torch.nn.Module" not in script.trace.bases(own):
        return False
    for each in script.trace.lineage(own):
        for stores in each.attributes.values():
            for store in stores:
                if holds_weights(script, store.value, store.scope, deep + 1) or is_parameter(script, store.value, each):
                    return True
    return False


def is_parameter(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    """Whether NODE is nn.Parameter(…)."""
    return isinstance(node, ast.Call) and script.names.resolve(node.func, scope) == "torch.nn.Parameter"


def is_module(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    """Whether NODE surely is a module, a loss included: every constructor behind it makes one."""
    origins = script.trace.origins(node, scope)
    return bool(origins) and all(_makes_module(script, each.call, each.scope) for each in origins)


def _makes_module(script: Script, call: ast.Call | None, scope: Scope) -> bool:
    if call is None:
        return False
    name = script.names.resolve(call.func, scope)
    if name:
        space, _, last = name.rpartition(".")
        if name.startswith(_NORMED):
            return True
        return space == "torch.nn" and last[:1].isupper() and last not in ("Parameter", "Buffer")
    own = script.trace.definition(call.func, scope)
    return own is not None and own.kind == "class" and "torch.nn.Module" in script.trace.bases(own)


def has_modes(script: Script) -> bool:
    """Whether layers that this file uses may differ in training and evaluation."""
    calls = script.facts.calls
    if not _MODED.isdisjoint(calls) or "training" in script.aside:
        return True
    recurrent = (call for tail in ("LSTM", "GRU", "RNN") for call in calls.get(tail, ()))
    return any(call.argument("dropout") is not None for call in recurrent)


def _is_bare(node: ast.Call, last: str) -> bool:
    """Whether a normalisation has no weights: told so, or by its default."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    off = [given.get(word) for word in ("affine", "elementwise_affine")]
    if "Instance" in last:
        return not any(isinstance(each, ast.Constant) and each.value is True for each in off)
    return any(each is not None and not (isinstance(each, ast.Constant) and each.value is True) for each in off)


def _inside(node: ast.Call) -> list[ast.expr]:
    found: list[ast.expr] = []
    for each in node.args:
        inner = each.value if isinstance(each, ast.Starred) else each
        match inner:
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Dict(values=parts):
                found.extend(part for part in parts if part is not None)
            case ast.ListComp(elt=part) | ast.GeneratorExp(elt=part):
                found.append(part)
            case ast.BinOp(left=ast.List(elts=parts)):
                found.extend(parts)
            case _:
                found.append(inner)
    return found
