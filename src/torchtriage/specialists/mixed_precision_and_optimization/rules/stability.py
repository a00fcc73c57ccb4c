"""What the source alone shows about compositions that lose digits or overflow where one operation would not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.source.facts import Call, Scope
from torchtriage.examine.source.flow import Spot
from torchtriage.examine.source.script import Script
from torchtriage.examine.source.torch_api.symbols import symbols
from torchtriage.specialists.mixed_precision_and_optimization.rules.expressions import Reading, renamed, replaced


def _functions(activation: str) -> frozenset[str]:
    """The functions and layers that apply ACTIVATION."""
    return frozenset(name for name, word in symbols().activations.items() if word == activation)


_SOFTMAX = _functions("softmax")
_SIGMOID = _functions("sigmoid")
_REMEDY = "one-operation"


@detector("source/unstable-composition")
def unstable_composition(script: Script) -> Iterator[Sighting]:
    """Two operations are composed that overflow, or give log(0), where one combined operation does not."""
    for call in script.calls("log"):
        read = Reading(script, call.scope, call)
        inner = read.operand(call.node, "log")
        if inner is not None:
            yield from _logarithm(read, call, inner)
    scopes = {id(call.scope): call.scope for call in script.calls("exp")}
    for scope in scopes.values():
        yield from _exponentials(script, scope)


def _logarithm(read: Reading, call: Call, inner: ast.expr) -> Iterator[Sighting]:
    end = read.end(inner)
    script = read.script
    if read.is_call(end, "softmax", _SOFTMAX):
        yield script.seen(
            call.node,
            "a probability that softmax rounds to 0 becomes log(0) = -inf, and its gradient NaN; log_softmax gives "
            "its logarithm directly, and cross_entropy the loss",
            renamed(script, _REMEDY, call.node, end, {"softmax": "log_softmax"}) if end is inner else (),
        )
    elif read.is_call(end, "sigmoid", _SIGMOID):
        names = {"F.sigmoid": "F.logsigmoid", "torch.sigmoid": "torch.nn.functional.logsigmoid"}
        yield script.seen(
            call.node,
            "sigmoid rounds to 0 (at -89 in float32 on a CPU, at -17.4 in float16), and log(0) is -inf; logsigmoid, "
            "or binary_cross_entropy_with_logits for the loss, has no such bound",
            renamed(script, _REMEDY, call.node, end, names) if end is inner else (),
        )
    elif (
        isinstance(end, ast.BinOp)
        and isinstance(end.op, ast.Sub)
        and _is_one(end.left)
        and _is_sigmoid(read, end.right)
    ):
        yield script.seen(
            call.node,
            "1 - sigmoid(x) is 0 above 17 in float32 and above 8.3 in float16, and log(0) is -inf; logsigmoid(-x), or "
            "binary_cross_entropy_with_logits for the loss, has no such bound",
        )
    elif read.is_sum_of_exp(end):
        yield script.seen(
            call.node,
            "exp overflows above 88.7 in float32 and above 11.09 in float16, and a sum of zeros gives log(0) = -inf; "
            "torch.logsumexp has neither bound",
            read.logsumexp(call.node, _REMEDY) if end is inner else (),
        )
    elif end is inner and isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add):
        yield from _one_plus(read, call, inner)


def _is_sigmoid(read: Reading, node: ast.expr) -> bool:
    return read.is_call(read.end(node), "sigmoid", _SIGMOID)


def _one_plus(read: Reading, call: Call, inner: ast.BinOp) -> Iterator[Sighting]:
    """Judges log(1 + x)."""
    rest = inner.right if _is_one(inner.left) else inner.left if _is_one(inner.right) else None
    if rest is None:
        return
    power = read.operand(rest, "exp")
    if power is None and (read.script.name(call) != "torch.log" or not read.is_small(rest)):
        return
    if power is None:
        edits = replaced(read.script, _REMEDY, call.node, "torch.log1p({})", rest) if _is_torch(call.node) else ()
        yield read.script.seen(
            call.node, "1 + x rounds x away: below 6e-8 in float32 (4.9e-4 in float16) this is 0; log1p(x) is x", edits
        )
    elif not read.is_bounded(power):
        softplus = "torch.nn.functional.softplus({})"
        edits = replaced(read.script, _REMEDY, call.node, softplus, power) if _is_torch(call.node) else ()
        yield read.script.seen(
            call.node,
            "exp overflows above 88.7 in float32 and above 11.09 in float16, where softplus(x) is just x",
            edits,
        )


def _exponentials(script: Script, scope: Scope) -> Iterator[Sighting]:
    """Judges exp(x) / sum(exp(x)) and exp(x) - 1 in the body of SCOPE."""
    for node, within, use in _arithmetic(scope):
        read = Reading(script, scope, use)
        if isinstance(node.op, ast.Div):
            if read.is_softmax(node):
                yield script.seen(
                    node,
                    "this is a softmax by hand: exp overflows above 88.7 in float32 and bfloat16 and above 11.09 in "
                    "float16, which gives inf / inf = NaN, and what underflows to 0 gives log(0) = -inf; softmax, "
                    "log_softmax and cross_entropy subtract the largest value first",
                )
        elif _is_one(node.right) and not within:
            power = read.operand(node.left, "exp")
            if power is not None and read.is_small(power):
                edits = replaced(script, _REMEDY, node, "torch.expm1({})", power) if _is_torch(node.left) else ()
                yield script.seen(
                    node, "exp(x) - 1 cancels: below 6e-8 in float32 (4.9e-4 in float16) it is 0; expm1(x) is x", edits
                )


def _arithmetic(scope: Scope) -> Iterator[tuple[ast.BinOp, bool, Spot]]:
    """The quotients and differences in SCOPE, whether each is a term of a longer sum, and where it is evaluated."""
    spots: dict[int, tuple[ast.AST, Spot]] = {}
    for action in scope.actions:
        statement = action.statement if isinstance(action, Call) else action.node
        spots.setdefault(id(statement), (statement, action))
    for each in scope.returns:
        spots.setdefault(id(each.node), (each.node, each))
    for statement, spot in spots.values():
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr):
            yield from _within(statement, spot)


def _within(statement: ast.stmt, spot: Spot) -> Iterator[tuple[ast.BinOp, bool, Spot]]:
    terms: set[int] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Add | ast.Sub):
                terms |= {id(node.left), id(node.right)}
            if isinstance(node.op, ast.Div | ast.Sub):
                yield node, id(node) in terms, spot


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value == 1


def _is_torch(node: ast.expr) -> bool:
    """Whether NODE is a call that is written torch.something(…)."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="torch"))):
            return True
    return False
