"""Compositions of operations that lose digits or overflow where one operation would not, and that one operation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from torchtriage.core.evidence import Edit
from torchtriage.examine.source.execution import events
from torchtriage.examine.source.execution.training import Training
from torchtriage.examine.source.execution.trainings import Fact, Facts, Mend
from torchtriage.examine.source.execution.values import Spot
from torchtriage.examine.source.facts import dotted
from torchtriage.examine.source.nodes import once
from torchtriage.examine.source.script import Script

_REMEDY = "one-operation"
_BOUNDS = re.compile(
    "max|min|clamp|clip|abs|logsumexp|lse|log_|_log|logp|softplus|tanh|sigmoid|softmax|logits_shift|"
    "shifted|detach|norm_const|log_z|relu|cummax"
)
"""Words in an exponent by which overflow is ruled out: `exp(logp - old_logp)` of reinforcement learning."""
_SMALL = re.compile("eps|delta|tiny|small|rate|return|prob|perturb|noise|growth|drift|interest|yield|strain")
"""Words of quantities that are small: durations, counts and coordinates are not, and lose nothing in 1 + x."""
_DISTANCE = re.compile("dist(?!rib)|norm|square|sq$|pow|d2$")
_SAMPLES = re.compile(rb"torch\.distributions|from torch import distributions")
"""By which actions are drawn: what has a probability of 0 is not drawn, and its logarithm not asked for."""
_SIGMOIDS = {"F.sigmoid": "F.logsigmoid", "torch.sigmoid": "torch.nn.functional.logsigmoid"}
_ONE_MINUS = (
    "1 - sigmoid(x) is 0 above 17 in float32 and above 8.3 in float16, and log(0) is -inf; logsigmoid(-x), or "
    "binary_cross_entropy_with_logits for the loss, has no such bound"
)
_SOFTMAX = (
    "this is a hand-written softmax: exp overflows above 88.7 in float32 and bfloat16 and above 11.09 in float16, "
    "which gives inf / inf = NaN, and what underflows to 0 gives log(0) = -inf; softmax, log_softmax and cross_entropy "
    "subtract the largest value first"
)


def compositions(training: Training, call: events.Composed) -> Facts:
    """What is wrong with CALL."""
    if "exp" in call.inner and (call.origin is None or _is_bounded(_operand(call.origin.node))):
        return
    # what log(softmax(x)) harms is the gradient
    is_harmless = call.inner == "softmax" and (not call.grad or training.mentions(_SAMPLES))
    found = _of_logarithm(call) if call.name == "log" and not is_harmless else None
    if call.name == "/" and not _is_sinkhorn(training, call.spot):
        found = call.spot, _SOFTMAX
    elif call.name == "- 1" and not _is_term(training, call.spot) and _is_small_exponential(call):
        fact = "exp(x) - 1 cancels: below 6e-8 in float32 (4.9e-4 in float16) it is 0; expm1(x) is x"
        found = call.spot, fact, _expm1
    if found is not None:
        yield found


def _is_sinkhorn(training: Training, spot: Spot) -> bool:
    """Whether SPOT stands in an assignment of samples to prototypes, whose rows and columns are divided in turn."""
    return any("sinkhorn" in ast.unparse(each).lower() for each in training.definitions_around(spot)[-1:])


def _of_logarithm(call: events.Composed) -> Fact | None:
    """What is wrong with a logarithm of what comes out of another operation."""
    if not call.inner and _is_of_one_plus_small(call.spot.node):
        return (
            call.spot,
            "1 + x rounds x away: below 6e-8 in float32 (4.9e-4 in float16) this is 0; log1p(x) is x",
            _log1p,
        )
    if call.inner == "1 - sigmoid":
        return call.spot, _ONE_MINUS
    found = _LOGARITHMS.get(call.inner)
    return (call.spot, *found) if found is not None else None


def _operand(node: ast.AST | None) -> ast.expr | None:
    """The x of torch.f(x) and of x.f(); None where NODE is no such call."""
    if not isinstance(node, ast.Call) or node.keywords or len(node.args) > 1:
        return None
    if node.args:
        return node.args[0]
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _words(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute):
            yield (each.id if isinstance(each, ast.Name) else each.attr).lower()


def _is_bounded(exponent: ast.expr | None) -> bool:
    """Whether the words of EXPONENT speak of a bound, or say that it is a negated distance: of what a function is
    given, nothing else tells.
    """
    if exponent is None:
        return False
    is_sum = any(isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add | ast.Sub) for each in ast.walk(exponent))
    signs = sum(isinstance(each, ast.USub) for each in ast.walk(exponent))
    words = [*_words(exponent)]
    if not is_sum and signs == 1 and any(map(_DISTANCE.search, words)):
        return True
    return any(map(_BOUNDS.search, words))


def _is_small(node: ast.expr) -> bool:
    """Whether the words in NODE, or a number below 0.1 in it, say that it is a small quantity.

    What it is divided by says nothing: in distance / (width + epsilon), of boxes, the epsilon is a guard.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _is_small(node.left)
    numbers = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return any(isinstance(each, float) and 0 < each < 0.1 for each in numbers) or any(map(_SMALL.search, _words(node)))


def _rest(node: ast.expr | None) -> ast.expr | None:
    """The x of 1 + x, and of x + 1."""
    match node:
        case ast.BinOp(op=ast.Add(), left=ast.Constant(value=1 | 1.0), right=rest):
            return rest
        case ast.BinOp(op=ast.Add(), left=rest, right=ast.Constant(value=1 | 1.0)):
            return rest
    return None


def _is_of_one_plus_small(node: ast.AST) -> bool:
    rest = _rest(_operand(node))
    return rest is not None and _is_torch(node, "log") and _is_small(rest)


def _is_small_exponential(call: events.Composed) -> bool:
    exponent = _operand(call.origin.node) if call.origin is not None else None
    return exponent is not None and _is_small(exponent)


def _is_term(training: Training, spot: Spot) -> bool:
    return id(spot.node) in _terms(training.code_around(spot))


@once
def _terms(tree: ast.AST) -> frozenset[int]:
    """What is a term of a longer sum in TREE, by identity: exp(r) - 1 - r, an estimate of a divergence, is meant."""
    sums = (each for each in ast.walk(tree) if isinstance(each, ast.BinOp))
    inner = (side for each in sums if isinstance(each.op, ast.Add | ast.Sub) for side in (each.left, each.right))
    return frozenset(map(id, inner))


def _is_torch(node: ast.AST | None, name: str) -> bool:
    """Whether NODE is written torch.NAME(…)."""
    return isinstance(node, ast.Call) and dotted(node.func) == f"torch.{name}"


# edits: of what is written as one expression


def _log_softmax(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    return _renamed(script, node, {"softmax": "log_softmax"})


def _log_sigmoid(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    return _renamed(script, node, _SIGMOIDS)


def _softplus(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    power = _operand(_rest(_operand(node)))
    return _replaced(script, node, "torch.nn.functional.softplus({})", power) if _is_torch(node, "log") else ()


def _log1p(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    return _replaced(script, node, "torch.log1p({})", _rest(_operand(node))) if _is_torch(node, "log") else ()


def _expm1(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    power = node.left if isinstance(node, ast.BinOp) else None
    return _replaced(script, node, "torch.expm1({})", _operand(power)) if _is_torch(power, "exp") else ()


def _logsumexp(script: Script, node: ast.AST) -> tuple[Edit, ...]:
    """torch.logsumexp(x, dim=…) for torch.log(torch.sum(torch.exp(x), dim=…)); none without a dimension."""
    total = _operand(node)
    if not _is_torch(node, "log") or not isinstance(total, ast.Call) or not isinstance(total.func, ast.Attribute):
        return ()
    is_function = dotted(total.func.value) == "torch"
    summed, rest = (total.args[0], total.args[1:]) if is_function and total.args else (total.func.value, total.args)
    is_plain = all(each.arg in ("dim", "keepdim") for each in total.keywords)
    is_of_exp = isinstance(summed, ast.Call) and dotted(summed.func).rpartition(".")[2] == "exp"
    if not is_of_exp or not is_plain or not (rest or any(each.arg == "dim" for each in total.keywords)):
        return ()
    words = [*map(script.source, rest), *(f"{each.arg}={script.source(each.value)}" for each in total.keywords)]
    return _replaced(script, node, f"torch.logsumexp({{}}, {', '.join(words)})", _operand(summed))


def _replaced(script: Script, node: ast.AST, form: str, inner: ast.expr | None) -> tuple[Edit, ...]:
    """The edit that puts FORM, with the text of INNER in its braces, in the place of NODE."""
    if inner is None:
        return ()
    first, last = script.text.span(inner)
    text = script.text.data[first:last].decode(errors="replace")
    return () if "\n" in text or "#" in text else script.replaced(_REMEDY, node, form.replace("{}", text))


def _renamed(script: Script, outer: ast.AST, names: Mapping[str, str]) -> tuple[Edit, ...]:
    """The edit that leaves of OUTER only the call in it, under its new name: by its full name or its last word."""
    inner = _operand(outer)
    if not isinstance(inner, ast.Call) or not isinstance(inner.func, ast.Attribute):
        return ()
    old = dotted(inner.func) if dotted(inner.func) in names else inner.func.attr
    (first, last), (_, called), data = script.text.span(inner), script.text.span(inner.func), script.text.data
    before, behind = data[first : called - len(old.encode())], data[called:last]
    if old not in names or b"#" in before + behind:
        return ()
    new = before.decode(errors="replace") + names[old] + behind.decode(errors="replace")
    return script.replaced(_REMEDY, outer, new)


_LOGARITHMS: dict[str, tuple[str, Mend]] = {
    "softmax": (
        "a probability that softmax rounds to 0 becomes log(0) = -inf, and its gradient NaN; log_softmax gives its "
        "logarithm directly, and cross_entropy the loss",
        _log_softmax,
    ),
    "sigmoid": (
        "sigmoid rounds to 0 (at -89 in float32 on a CPU, at -17.4 in float16), and log(0) is -inf; logsigmoid, or "
        "binary_cross_entropy_with_logits for the loss, has no such bound",
        _log_sigmoid,
    ),
    "sum of exp": (
        "exp overflows above 88.7 in float32 and above 11.09 in float16, and a sum of zeros gives log(0) = -inf; "
        "torch.logsumexp has neither bound",
        _logsumexp,
    ),
    "1 + exp": (
        "exp overflows above 88.7 in float32 and above 11.09 in float16, where softplus(x) is just x",
        _softplus,
    ),
}
"""By what a logarithm is taken of: what is wrong, and the edit."""
