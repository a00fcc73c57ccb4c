"""On which sides the elements of a tensor are bounded: x - x.max() is never large, a distance never negative."""

from __future__ import annotations

import ast
from functools import cache, reduce
from typing import NamedTuple

from torchtriage.examine.source.execution.lore import lore
from torchtriage.examine.source.torch_api.families import CASTS, RESHAPES
from torchtriage.examine.source.torch_api.symbols import symbols


class Bounds(NamedTuple):
    """Whether no element is far below zero, and whether none is far above."""

    below: bool = False
    above: bool = False

    @property
    def opposite(self) -> Bounds:
        """Those of -x."""
        return Bounds(self.above, self.below)

    def plus(self, other: Bounds) -> Bounds:
        """Those of x + y, and of x and y side by side in one tensor."""
        return Bounds(self.below and other.below, self.above and other.above)

    def times(self, other: Bounds) -> Bounds:
        """Those of x * y. What is bounded on both sides is a mask, or a weight between 0 and 1."""
        if BOTH in (self, other):
            return self if other == BOTH else other
        return BELOW if self == other == BELOW else FREE


FREE, BELOW, ABOVE, BOTH = Bounds(), Bounds(below=True), Bounds(above=True), Bounds(below=True, above=True)
SAME = RESHAPES | CASTS | symbols().choosing_methods | frozenset(lore()["bounds"]["rearranges"])
"""Operations that pick, copy or rearrange elements."""
_METHODS: dict[str, ast.operator] = {
    "add": ast.Add(), "sub": ast.Sub(), "subtract": ast.Sub(), "mul": ast.Mult(), "multiply": ast.Mult(),
    "div": ast.Div(), "divide": ast.Div(), "true_divide": ast.Div(), "pow": ast.Pow(),
}  # fmt: skip
"""Methods that are written as operators, too."""


@cache
def _results() -> dict[str, Bounds]:
    """By operation, the bounds of what it gives, whatever it is given."""
    rows = lore()["bounds"]
    return {name: each for key, each in (("both", BOTH), ("above", ABOVE), ("below", BELOW)) for name in rows[key]}


def bounds_of_operation(
    name: str, operands: list[Bounds], *, is_shifted: bool = False, is_square: bool = False
) -> Bounds:
    """Those of what the operation NAME gives of OPERANDS.

    is_shifted: the second is the largest of all elements. is_square: it is the first once more, or the number 2.
    """
    plain = name.removesuffix("_")
    if plain in _results():
        return _results()[plain]
    if name in SAME:
        return reduce(Bounds.plus, operands)
    if plain in ("sum", "mean", "sqrt"):
        return operands[0]
    if plain in ("neg", "negative"):
        return operands[0].opposite
    if plain in lore()["bounds"]["products"]:  # of features that are normalized; of others they grow with the length
        return BOTH if len(operands) > 1 and all(each == BOTH for each in operands) else FREE
    op = _METHODS.get(plain)
    return bounds_of_operator(op, operands, is_shifted=is_shifted, is_square=is_square) if op is not None else FREE


def bounds_of_operator(
    op: ast.operator | None, operands: list[Bounds], *, is_shifted: bool = False, is_square: bool = False
) -> Bounds:
    """Those of LEFT OP RIGHT, the two OPERANDS; of -x for a single one."""
    if len(operands) != 2:
        return operands[0].opposite if operands else FREE
    left, right = operands
    if isinstance(op, ast.Sub):
        found = left.plus(right.opposite)
        return found._replace(above=True) if is_shifted else found
    if isinstance(op, ast.Mult | ast.Pow) and is_square:
        return BOTH if left == BOTH else BELOW
    if isinstance(op, ast.MatMult):
        return BOTH if left == right == BOTH else FREE
    if isinstance(op, ast.Add):
        return left.plus(right)
    return left.times(right) if isinstance(op, ast.Mult | ast.Div) else FREE
