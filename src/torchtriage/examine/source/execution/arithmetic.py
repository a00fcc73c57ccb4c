"""What arithmetic on tensors comes out of: exponentials, probabilities, norms; and whether it is bounded."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchtriage.examine.source.execution.autograd import Tensor
from torchtriage.examine.source.execution.bounds import (
    ABOVE,
    BELOW,
    BOTH,
    FREE,
    SAME,
    Bounds,
    bounds_of_operation,
    bounds_of_operator,
)
from torchtriage.examine.source.execution.expressions import NEGATED
from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.execution.values import Arguments, External, Member, Unknown, Value

SHIFTED = "a shifted value"
"""Why x - x.max() is not known where x is not."""
LIMITS = frozenset({"clamp_", "clip_", "clamp_max_"})
"""Methods that bound each element of a tensor in place."""
LARGEST = frozenset({"max", "amax", "logsumexp", "cummax", "maximum"})
"""Operations that give the largest of some elements. maximum: of those so far and the next ones."""
_FORMATS = {
    "half": "float16", "float16": "float16", "bfloat16": "bfloat16", "float": "float32", "float32": "float32",
    "double": "float64", "float64": "float64",
}  # fmt: skip
"""The formats of elements by the words for them, which are methods that cast, too."""
_VANISHES = {"float16": 2.0**-25}
"""By format, half of its smallest number: this and less is rounded to 0."""
_COPIES = frozenset({"detach", "clone", "cpu", "float", "contiguous"})
"""Operations that give the same values again."""
_POWERS = ("exp", "weighted exp")


def format_of(values: Iterable[Value]) -> str:
    """The format that VALUES ask for: "float16" for torch.half among them; "" for none."""
    names = [each.name.removeprefix("torch.") for each in values if isinstance(each, External)]
    return next((_FORMATS[each] for each in names if each in _FORMATS), "")


def device_of(values: Iterable[Value]) -> str:
    """The device that VALUES, arguments of to() and its kin, ask for: "cuda", "cpu"; "" for none that is known."""
    for each in values:
        if isinstance(each, str) or (isinstance(each, Unknown) and each.is_plain):
            name = each if isinstance(each, str) else each.why
            if name.partition(":")[0] in ("cuda", "cpu", "xpu", "mps"):
                return "cpu" if name.startswith("cpu") else "cuda"
        if isinstance(each, Unknown) and each.is_of_rank:  # .to(local_rank)
            return "cuda"
    return ""


def names_device(given: Iterable[Value]) -> bool:
    """Whether to() with what it is GIVEN moves something to a device that is not known: one that is chosen is none but
    an accelerator where there is one.
    """
    first = next(iter(given), None)
    return isinstance(first, Unknown) and "type" not in first.why and not first.why.startswith("cpu")


def cast_by(name: str, given: Iterable[Value]) -> str:
    """The format of what the operation NAME gives, where it casts, or where one is GIVEN to it; else ""."""
    return _FORMATS.get(name, "") or format_of(given)


def vanishing(format_: str, values: Iterable[Value]) -> float | None:
    """The first of VALUES that is above 0, and 0 in FORMAT_."""
    most = _VANISHES.get(format_, 0.0)
    return next((each for each in values if isinstance(each, float) and 0 < each <= most), None)


def is_largest(value: Value) -> bool:
    """Whether VALUE is the largest of some elements: x.max(), x.max(dim=1).values."""
    if isinstance(value, Member) and value.name == "values":
        value = value.receiver
    return value.is_largest if isinstance(value, Tensor) else isinstance(value, Unknown) and value.why in LARGEST


def is_one(value: Value) -> bool:
    return isinstance(value, int | float) and value == 1


def carry(held: Tensor, result: Tensor, name: str, arguments: Arguments) -> None:
    """What RESULT of the operation NAME on HELD comes out of, and how it is bounded."""
    if name in _COPIES:
        result.same_as = held.same_as or held
    if name in SAME:
        result.activation, result.activated = held.activation, held.activated
        result.is_largest, result.is_positive = held.is_largest, held.is_positive
    result.is_largest |= name in LARGEST
    others = (
        [each for each in arguments if isinstance(each, Tensor | Unknown | int | float)] if name not in SAME else []
    )
    result.bounds = bounds_of_operation(
        name,
        [_bounds_of(each) for each in (held, *others)],
        is_shifted=any(map(is_largest, others[:1])),
        is_square=any(_is_squared(held, each) for each in others[:1]),
    )
    _activate(held, result, name, arguments)


def _bounds_of(value: Value) -> Bounds:
    """How VALUE is bounded, as an operand: a number is, and so is what a setting stands for."""
    if isinstance(value, Tensor):
        return BOTH if value.is_scalar else value.bounds
    if isinstance(value, Unknown):
        is_normal = value.why.endswith("normalize")
        return BOTH if value.is_plain or is_normal else ABOVE if value.why == SHIFTED else FREE
    return BOTH


def _is_squared(left: Value, right: Value) -> bool:
    """Whether LEFT * RIGHT, or LEFT ** RIGHT, is a square."""
    is_same = right is left and isinstance(left, Tensor)
    return is_same or (isinstance(right, int | float) and right == 2)


def _activate(held: Tensor, result: Tensor, name: str, arguments: Arguments) -> None:
    """The activation, or the part of one, that RESULT of the operation NAME on HELD comes out of."""
    if name in lore()["activations"]:
        result.activation, result.activated = lore()["activations"][name], result.spot
        result.is_positive = held.bounds == BOTH and name in ("sigmoid", "softmax")
    elif name == "exp" and not held.bounds.above and not held.created:
        result.activation, result.activated = "exp", result.spot
    elif name == "sum" and held.activation in _POWERS:
        result.activation, result.activated = "sum of exp", held.activated
    elif name == "where":
        _choose(result, [held, *(each for each in arguments if isinstance(each, Tensor))][-2:])


def _choose(result: Tensor, pieces: list[Tensor]) -> None:
    """where(target > 0, p, 1 - p), the probability of the true class."""
    if {each.activation for each in pieces} == {"sigmoid", "1 - sigmoid"}:
        result.activation, result.activated = "sigmoid", pieces[0].activated


def compose(result: Tensor, operands: Arguments, op: ast.operator | None) -> None:
    """What RESULT of the arithmetic OP on OPERANDS comes out of, and whether it is bounded."""
    if len(operands) != 2:  # -x
        result.bounds = bounds_of_operator(op, [_bounds_of(each) for each in operands])
        return
    left, right = operands
    result.activation = _composed(op, left, right)
    origins = (each.activated for each in operands if isinstance(each, Tensor) and each.activated)
    result.activated = next(origins, None) if result.activation else None
    result.bounds = _combined(op, left, right)
    result.is_positive = result.activation == "1 - sigmoid" and isinstance(right, Tensor) and right.is_positive
    if isinstance(op, ast.Div):
        result.of_gradients = _quotient(left, right)


def _combined(op: ast.operator | None, left: Value, right: Value) -> Bounds:
    """How LEFT OP RIGHT is bounded. What a tensor is multiplied with or divided by, and is none, is positive by habit:
    a temperature, a number of heads.
    """
    if isinstance(op, ast.Mult | ast.Div) and not (isinstance(left, Tensor) and isinstance(right, Tensor)):
        held, factor = (left, right) if isinstance(left, Tensor) else (right, left)
        is_number = isinstance(factor, int | float)
        is_negative = factor < 0 if is_number else isinstance(factor, Unknown) and factor.why == NEGATED
        is_inverse = isinstance(op, ast.Div) and held is right
        bounds = _bounds_of(held) if not is_inverse or _bounds_of(held) == BELOW else FREE
        return bounds.opposite if is_negative else bounds
    operands = [_bounds_of(left), _bounds_of(right)]
    is_square = _is_squared(left, right)
    return bounds_of_operator(op, operands, is_shifted=is_largest(right), is_square=is_square)


def composition(operands: Arguments, op: ast.operator | None) -> str:
    """The composed function that OP computes on OPERANDS: "/" for a softmax, "- 1" for exp(x) - 1; "" for neither."""
    if len(operands) != 2:
        return ""
    left, right = operands
    first, second = _kind(left), _kind(right)
    if isinstance(op, ast.Div) and first in _POWERS and second == "sum of exp":
        return "/"
    return "- 1" if isinstance(op, ast.Sub) and is_one(right) and first == "exp" else ""


def _kind(value: Value) -> str:
    return value.activation if isinstance(value, Tensor) else ""


def _quotient(left: Value, right: Value) -> str:
    """What LEFT / RIGHT is of gradients: a ratio of two norms is as large as it was without a scale."""
    above, below = (each.of_gradients if isinstance(each, Tensor) else "" for each in (left, right))
    return "" if above == below else above or ("inverse" if below == "norm" else "norm")


def _composed(op: ast.operator | None, left: Value, right: Value) -> str:
    if isinstance(op, ast.Mult):
        return _product(_kind(left), _kind(right))
    if isinstance(op, ast.Sub):
        if is_one(left) and _kind(right) == "sigmoid":
            return "1 - sigmoid"
        return "sum of exp" if _kind(left) == "sum of exp" else ""
    return _sum(left, right) if isinstance(op, ast.Add) else ""


def _product(first: str, second: str) -> str:
    """What a product comes out of: e * mask, p * y."""
    found = first or second
    if not found or (first and second):
        return ""
    return found if found.startswith("weighted") else f"weighted {found}"


def _sum(left: Value, right: Value) -> str:
    kinds = _kind(left), _kind(right)
    if "exp" in kinds and (is_one(left) or is_one(right)):
        return "1 + exp"
    if set(kinds) == {"weighted sigmoid", "weighted 1 - sigmoid"}:  # p * y + (1 - p) * (1 - y), as in _choose
        return "sigmoid"
    return "sum of exp" if all(each in (*_POWERS, "sum of exp") for each in kinds) else ""
