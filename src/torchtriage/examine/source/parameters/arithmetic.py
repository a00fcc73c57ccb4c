"""Arithmetic and comparisons over literals, as small as numbers are that count layers."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

from torchtriage.examine.source.parameters.assembly import PLAIN, Made, Part, Value

MANY = 10_000  # elements, or names; larger numbers than this do not count layers
LITERAL = (bool, int, float, str, type(None))
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}


def apply(operation: Callable[[Any, Any], Any] | None, one: Any, other: Any) -> Value:
    """OPERATION of the two, where both are literals; PLAIN where they are not, or it comes to too much."""
    joined = operation in (operator.add, operator.mul)
    whole = (*LITERAL, list, tuple) if joined else LITERAL
    held = (*whole, list, tuple, dict) if operation not in BINARY.values() else whole
    same = operation in (operator.is_, operator.is_not) and isinstance(one, Part | Made)
    if operation is None or not (same or isinstance(one, whole)) or not isinstance(other, held):
        return PLAIN
    sizes = [len(each) if isinstance(each, str | list | tuple | dict) else each for each in (one, other)]
    if joined and any(isinstance(size, int) and abs(size) > MANY for size in sizes):
        return PLAIN  # nothing that is counted in layers
    if operation is operator.mul and isinstance(sizes[0], int) and isinstance(sizes[1], int):
        counted = isinstance(one, int) and isinstance(other, int)
        if abs(sizes[0] * sizes[1]) > MANY and not counted:
            return PLAIN
    try:
        return operation(one, other)
    except (TypeError, ValueError, ZeroDivisionError):
        return PLAIN
