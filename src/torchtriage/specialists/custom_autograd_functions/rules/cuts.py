"""Where a loss is reached only through an operation that has no gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec import Struct

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope, Store, dotted
from torchtriage.examine.source.flow import Spot, reaching
from torchtriage.examine.source.steps import TrainingStep

_DEEP = 10

# What gives no gradient at all, and what gives zero everywhere (by the last word).
_NONE = frozenset({"argmax", "argmin", "argsort", "ge", "gt", "le", "lt", "eq", "ne", "long", "int", "bool", "byte"})
_ZERO = frozenset({"round", "sign", "floor", "ceil", "trunc", "heaviside", "sgn"})
# What gives values and their places: the second of the two has no gradient.
_PLACES = frozenset({"max", "min", "topk", "sort"})
# What passes on what it is given, as far as gradients go.
_PASSING = frozenset(
    {"float", "to", "double", "half", "type", "view", "reshape", "squeeze", "unsqueeze", "flatten", "cuda", "cpu"}
    | {"mean", "sum", "contiguous", "one_hot", "type_as", "requires_grad_", "abs", "pow", "sqrt", "clamp", "permute"}
)
_LOSSES = frozenset(
    {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cross_entropy", "nll_loss", "binary_cross_entropy"}
    | {"binary_cross_entropy_with_logits", "kl_div", "soft_margin_loss"}
)


class _Spot(Struct, frozen=True):
    """An expression, and where it is evaluated."""

    node: ast.expr
    scope: Scope
    at: Spot


@detector("source/no-gradient-by-design")
def no_gradient_by_design(step: TrainingStep) -> Iterator[Sighting]:
    """The loss is reached from the model only through an operation that has no gradient."""
    told: set[int] = set()
    for backward in step.backwards:
        if backward.root is None:
            continue
        for compared in _compared(step, _Spot(backward.root, backward.call.scope, backward.call), 0):
            cut = _cut(step, compared, 0)
            if cut is None or id(cut.node) in told or not _is_models(step, cut):
                continue
            told.add(id(cut.node))
            yield step.script.seen(cut.node, _fact(cut, backward.call))


def _fact(cut: _Spot, backward: Call) -> str:
    word, line = _word(cut.node), backward.node.lineno
    if isinstance(cut.node, ast.Call) and _tail(cut.node) in _ZERO:
        return f"the gradient of {word} is zero everywhere: the backward of line {line} gives the model zeros only"
    return (
        f"{word} has no gradient, and the loss has no other way to the model: the backward of line {line} raises "
        "RuntimeError, or leaves the model without gradients"
    )


def _compared(step: TrainingStep, spot: _Spot, deep: int) -> Iterator[_Spot]:
    """What the whole loss compares with the targets: the first argument of the criterion, or a difference's side."""
    inner: ast.expr | None = None
    match spot.node:
        case ast.Name() if deep < _DEEP:
            value = _value(spot)
            if value is not None:
                yield from _compared(step, value, deep + 1)
        case ast.BinOp(left=left, op=ast.Div() | ast.Pow(), right=ast.Name() | ast.Attribute() | ast.Constant()):
            inner = left
        case ast.BinOp(left=left, op=ast.Sub(), right=right):
            sides = [_Spot(each, spot.scope, spot.at) for each in (left, right)]
            yield from (own for own, other in (sides, sides[::-1]) if not _mentions_model(step, other, 0))
        case ast.Call(args=[first, *rest]) as node if _is_loss(step, node, spot.scope):
            if rest and not any(_mentions_model(step, _Spot(each, spot.scope, spot.at), 0) for each in rest):
                yield _Spot(first, spot.scope, spot.at)
        case ast.Call() as node if _tail(node) in _PASSING:
            inner = _operand(step, spot)
    if inner is not None:
        yield from _compared(step, _Spot(inner, spot.scope, spot.at), deep)


def _is_loss(step: TrainingStep, node: ast.Call, scope: Scope) -> bool:
    if step.script.names.resolve(node.func, scope).startswith("torch.nn.functional."):
        return _tail(node) in _LOSSES
    return bool(step.script.roles.made(node.func, scope, "criterion"))


def _cut(step: TrainingStep, spot: _Spot, deep: int) -> _Spot | None:
    """The operation without a gradient that SPOT comes out of, whatever comes before."""
    node = spot.node
    inner: ast.expr | None = None
    match node:
        case ast.Name() if deep < _DEEP:
            value = _value(spot)
            return _cut(step, value, deep + 1) if value is not None else None
        case ast.Compare(ops=[ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()]):
            return spot
        case ast.Subscript(value=ast.Call() as call, slice=ast.Constant(value=1)) if _tail(call) in _PLACES:
            return _Spot(call, spot.scope, spot.at)
        case ast.Attribute(value=ast.Call() as call, attr="indices") if _tail(call) in _PLACES:
            return _Spot(call, spot.scope, spot.at)
        case ast.Call() if _tail(node) in _NONE | _ZERO and _operand(step, spot) is not None:
            return spot
        case ast.Call() if _tail(node) in _PASSING:
            inner = _operand(step, spot)
        case ast.UnaryOp(operand=operand):
            inner = operand
        case ast.BinOp(left=left, op=ast.Mult() | ast.Div(), right=ast.Constant()):
            inner = left
    return _cut(step, _Spot(inner, spot.scope, spot.at), deep) if inner is not None else None


def _operand(step: TrainingStep, spot: _Spot) -> ast.expr | None:
    """What a method or a function of torch works on."""
    node = spot.node
    if not isinstance(node, ast.Call):
        return None
    name = _resolved(step, spot)
    if name.startswith("torch."):
        return node.args[0] if node.args else None
    return node.func.value if isinstance(node.func, ast.Attribute) and not name else None


def _is_models(step: TrainingStep, cut: _Spot) -> bool:
    """Whether what is cut comes out of a model."""
    inner = _operand(step, cut) if isinstance(cut.node, ast.Call) else cut.node
    return inner is not None and _mentions_model(step, _Spot(inner, cut.scope, cut.at), 0)


def _mentions_model(step: TrainingStep, spot: _Spot, deep: int) -> bool:
    for node in ast.walk(spot.node):
        if isinstance(node, ast.Call) and step.script.roles.plays(node.func, spot.scope, "model"):
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and deep < _DEEP:
            for store in _stores(node.id, spot):
                value = store.value if store.how in ("assign", "augment") else None
                if value is not None and _mentions_model(step, _Spot(value, store.scope, store), deep + 1):
                    return True
    return False


def _value(spot: _Spot) -> _Spot | None:
    """What the name of SPOT was given; None where there may be several."""
    ways = _stores(dotted(spot.node), spot)
    if len(ways) != 1 or ways[0].how != "assign" or ways[0].value is None:
        return None
    store, value = ways[0], ways[0].value
    if store.index is None:
        return _Spot(value, store.scope, store)
    if store.index == 1 and isinstance(value, ast.Call) and _tail(value) in _PLACES:
        return _Spot(ast.copy_location(ast.Subscript(value, ast.Constant(1), ast.Load()), value), store.scope, store)
    return None


def _stores(name: str, spot: _Spot) -> list[Store]:
    return reaching(spot.scope.stores.get(name, []), spot.at)


def _resolved(step: TrainingStep, spot: _Spot) -> str:
    return step.script.names.resolve(spot.node.func, spot.scope) if isinstance(spot.node, ast.Call) else ""


def _tail(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func)


def _word(node: ast.expr) -> str:
    if not isinstance(node, ast.Call):
        return "a comparison"
    return f"the index of {_tail(node)}()" if _tail(node) in _PLACES else f"{_tail(node)}()"
