"""Whether the user's code divides a learning rate by the number of micro-batches: read in its source, never guessed.

Digits tell nothing: 2.5e-4 is a rate that many take as it is, and also a thousandth divided by four.
"""

from __future__ import annotations

import ast
from math import isclose
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Words = Callable[[str], set[str]]

_RATE = frozenset({"lr", "lrs", "rate", "rates", "alpha", "eta"})
_COUNT = frozenset({"accum", "accumulate", "accumulation", "accumulated", "micro", "microbatches", "every", "passes"})
_MEANT = _COUNT | {"sum", "summed", "sums"}


def is_divided(trees: Iterable[ast.AST], rate: float | None, passes: int, words: Words) -> bool:
    """Whether one of TREES divides a rate by what is PASSES, or divides two numbers of which RATE comes out.

    A multiplication by a quotient, 1 / n, counts; WORDS splits a name into its words. A name that the file sets to
    other numbers only is another one: lr * step / warmup is no division by the micro-batches.
    """
    return any(_Division(tree, rate, passes, words).is_there(tree) for tree in trees)


class _Division:
    """What a file sets its names to, and whether it divides a rate."""

    def __init__(self, tree: ast.AST, rate: float | None, passes: int, words: Words) -> None:
        self.rate, self.passes, self.words = rate, passes, words
        self.known: dict[str, set[float]] = {}
        for node in ast.walk(tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)):
                self._set(node)

    def _set(self, node: ast.Assign | ast.AnnAssign) -> None:
        number = _number(node.value) if node.value is not None else None
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for name in (name for target in targets for name in _names(target)):
            if number is not None:
                self.known.setdefault(name, set()).add(number)

    def is_there(self, tree: ast.AST) -> bool:
        return any(self._divides(node) for node in ast.walk(tree))

    def _divides(self, node: ast.AST) -> bool:
        if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            return self._is_rate(node.target) and self._by(node.value)
        if not isinstance(node, ast.BinOp):
            return False
        if isinstance(node.op, ast.Div):
            first, second = _number(node.left), _number(node.right)
            if first is not None and second:
                return self.rate is not None and isclose(first / second, self.rate, rel_tol=1e-6)
            return (self._is_rate(node.left) or self._comes_out(node)) and self._by(node.right)
        if isinstance(node.op, ast.Mult):
            sides = (node.left, node.right), (node.right, node.left)
            return any(self._is_rate(one) and self._is_quotient(other) for one, other in sides)
        return False

    def _comes_out(self, node: ast.BinOp) -> bool:
        """Whether a plain number divided so is the rate."""
        first = _number(node.left)
        return first is not None and self.rate is not None and isclose(first / self.passes, self.rate, rel_tol=1e-6)

    def _is_rate(self, node: ast.AST) -> bool:
        return any(self.words(name) & _RATE for name in _names(node))

    def _is_quotient(self, node: ast.AST) -> bool:
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and self._by(node.right)

    def _by(self, node: ast.AST) -> bool:
        """Whether NODE is the number of passes: it, a name that is set to it, or one that is named so."""
        if _number(node) is not None:
            return _number(node) == self.passes
        names = list(_names(node))
        set_to = set[float]().union(*(self.known.get(name, ()) for name in names))
        return self.passes in set_to if set_to else any(self.words(name) & _COUNT for name in names)


def _number(node: ast.AST) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value  # args["lr"]


def remarks(lines: Iterable[str], words: Words) -> bool:
    """Whether a remark on a line with a rate says that it is meant for accumulated gradients."""
    for line in lines:
        code, _, remark = line.partition("#")
        if remark and words(code) & _RATE and words(remark) & _MEANT:
            return True
    return False
