"""Where a step clips gradients: by torch's functions, by a wrapper's method, and by hand."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.source.events import Event
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import TrainingStep
from torchtriage.examine.source.torch_api.symbols import last_words, symbols

_FUNCTIONS = symbols().clip_functions
_METHODS = last_words(symbols().clips)
_BOUNDS = symbols().bounds
_FACTORS = symbols().scalings
_LIMIT = re.compile("clip|max|limit|thr|bound")
_OTHERS = re.compile("world|accum|scale|micro|count|token")


class Clip(Struct, frozen=True):
    """One place at which gradients are clipped. call: None where an assignment does it."""

    event: Event
    node: ast.AST
    scope: Scope
    call: Call | None = None


def clips(step: TrainingStep) -> Iterator[Clip]:
    """The places at which STEP clips gradients, in order."""
    for event in step.events:
        match event.fact:
            case Call() as call if _is_clip(step.script, call):
                yield Clip(event, call.node, call.scope, call)
            case Store(value=ast.expr() as value) as store if store.name.endswith((".grad", ".grad.data")):
                if _is_clipped(step.script, store, value):
                    yield Clip(event, store.node, store.scope)


def _is_clip(script: Script, call: Call) -> bool:
    if script.name(call) in _FUNCTIONS:
        return True
    if call.tail in _METHODS:
        return call.receiver is not None and script.roles.plays(call.receiver, call.scope, "model")
    if call.tail not in ("clamp_", "clip_", *_FACTORS):
        return False
    by_function = bool(script.name(call))
    target = call.argument("self", 0) if by_function else call.receiver
    if not _is_gradient(script, target, call.scope):
        return False
    factor = call.argument("other", 1 if by_function else 0)
    return call.tail in _BOUNDS or _is_limit(script, factor, call.scope, "div" in call.tail)


def _is_gradient(script: Script, node: ast.expr | None, scope: Scope) -> bool:
    """Whether NODE is x.grad, or a list or a name of such."""
    match node:
        case ast.Call(func=ast.Attribute(value=held, attr="detach")):
            return _is_gradient(script, held, scope)
    if dotted(node).endswith((".grad", ".grad.data")):
        return True
    ends = [end.node for end in script.trace.origins(node, scope)] if node is not None else []
    inside = [each.elt if isinstance(each, ast.ListComp) else each for each in ends]
    return bool(inside) and all(dotted(each).endswith((".grad", ".grad.data")) for each in inside)


def _is_clipped(script: Script, store: Store, value: ast.expr) -> bool:
    """Whether STORE puts clipped values into a gradient: p.grad = p.grad.clamp(-1, 1), p.grad *= limit / norm."""
    if isinstance(store.node, ast.AugAssign):
        divides = isinstance(store.node.op, ast.Div)
        return isinstance(store.node.op, ast.Mult | ast.Div) and _is_limit(script, value, store.scope, divides)
    match value:
        case ast.Call(func=ast.Attribute(value=held, attr=attr), args=args) if attr in _BOUNDS:
            return any(_is_gradient(script, each, store.scope) for each in (held, *args[:1]))
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return any(
                _is_gradient(script, one, store.scope) and _is_limit(script, other, store.scope, False)
                for one, other in ((left, right), (right, left))
            )
    return False


def _is_limit(script: Script, factor: ast.expr | None, scope: Scope, divides: bool) -> bool:
    """Whether FACTOR is a limit divided by a norm; by the norm of gradients and nothing that averages them."""
    parts = list(_written(script, factor, scope, 0))
    words = [dotted(each).rpartition(".")[2].lower() for each in parts if isinstance(each, ast.Name | ast.Attribute)]
    given = {dotted(factor).lower()}  # how the factor itself is called tells nothing: scale = limit / norm
    if any(_OTHERS.search(word) for word in words if word not in given):
        return False
    if not any("norm" in word or word == "grad" for word in words):
        return False
    quotient = divides or any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Div) for each in parts)
    bounded = any(isinstance(each, ast.Constant) and isinstance(each.value, float) for each in parts)
    return quotient and (bounded or any(_LIMIT.search(word) for word in words))


def _written(script: Script, node: ast.expr | None, scope: Scope, deep: int) -> Iterator[ast.AST]:
    """NODE and what its names were given, piece by piece."""
    for inner in ast.walk(node) if node is not None else ():
        yield inner
        if isinstance(inner, ast.Name) and deep < 3:
            for store in script.names.stores(inner.id, scope):
                if store.how == "assign":
                    yield from _written(script, store.value, store.scope, deep + 1)
