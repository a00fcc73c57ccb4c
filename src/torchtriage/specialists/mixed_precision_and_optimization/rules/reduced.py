"""How a loss is reduced: sums of several batches are the sum of one large batch, and need no division."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.source.facts import Scope, Store
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.steps import Backward, TrainingStep
from torchtriage.specialists.mixed_precision_and_optimization.rules.formats import behind

_MEANS = ("mean", "nanmean")
_DEEP = 3


def may_be_sum(step: TrainingStep, backward: Backward) -> bool:
    """Whether the loss may be a sum over its examples, or is made in a method that only a subclass writes."""
    values = [(backward.root, backward.call.scope)]
    values += [(e.fact.value, e.fact.scope) for e in behind(step, backward) if isinstance(e.fact, Store)]
    return any(_is_sum(step.script, value, scope, 0) for value, scope in values)


def _is_sum(script: Script, value: ast.expr | None, scope: Scope, deep: int) -> bool:
    for node in _terms(value):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr == "sum" and not node.args and not node.keywords:
            return True
        if script.names.resolve(node.func, scope) == "torch.sum" and len(node.args) == 1 and not node.keywords:
            return True
        if _is_made_to_sum(script, node.func, scope) or _is_written_elsewhere(script, node, scope, deep):
            return True
    return False


def _terms(value: ast.expr | None) -> Iterator[ast.expr]:
    """VALUE, and its terms where it is a sum of losses, up to the sign."""
    match value:
        case ast.BinOp(left=left, right=right):
            yield from (*_terms(left), *_terms(right))
        case ast.UnaryOp(operand=inner):
            yield from _terms(inner)
        case ast.expr():
            yield value


def _is_made_to_sum(script: Script, called: ast.expr, scope: Scope) -> bool:
    """Whether CALLED is a criterion that is made with a reduction other than the mean."""
    return any(
        keyword.arg == "reduction" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value == "mean")
        for origin in script.trace.origins(called, scope)
        if origin.call is not None
        for keyword in origin.call.keywords
    )


def _is_written_elsewhere(script: Script, call: ast.Call, scope: Scope, deep: int) -> bool:
    """Whether a function of this file that CALL runs gives a sum, or is a method that a subclass has to write."""
    helper = script.trace.definition(call.func, scope) if deep < _DEEP else None
    if helper is None or helper.kind != "function":
        return False
    if not helper.returns:
        return True
    named = {store.name: store.value for stores in helper.stores.values() for store in stores if store.how == "assign"}
    for each in helper.returns:
        value = each.node.value
        given = named.get(value.id) if isinstance(value, ast.Name) else None
        if any(_is_sum(script, part, helper, deep + 1) for part in (value, given)):
            return True
    return False
