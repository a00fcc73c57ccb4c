"""Numerical derivatives that say how far they can be trusted: noise, kinks and jumps are told from a wrong gradient."""

from __future__ import annotations

from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from .problem import flat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .problem import Problem

FIRST = 1e-4
"""Times the number itself where that is above 1: the step of the first central difference, error below 1e-8."""
STEPS = (3e-2, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
"""Of a closer look. In float64 the small ones win, in a function that computes in float32 the large ones."""
FORMATS = ((8, "bfloat16"), (11, "float16"), (24, "float32"))
WRONG = 5e-4
"""Relative. gradcheck's own rtol is 1e-3; a right backward with an epsilon of 1e-5 stays below it."""
FLOOR = 5e-5
"""Of the largest entry: where terms cancel, an epsilon in backward is as large as the entry that is left."""
SURE = 30.0
"""Times the estimated error of the numerical derivative."""


class Slope(NamedTuple):
    """A derivative by differences. state: settled, or why it cannot be trusted: kink, unsettled."""

    value: float
    error: float
    state: str


class Moves:
    """The function along single numbers of one of its inputs, as a sum weighted by WEIGHTS."""

    def __init__(self, problem: Problem, place: int, weights: Sequence[Any]) -> None:
        self.problem, self.place, self.weights = problem, place, weights
        self.middle = problem.outputs()
        self.calls = 0

    def quick(self, at: int) -> float:
        """One central difference."""
        step = self._step(at, FIRST)
        up, down = self._moved(at, step), self._moved(at, -step)
        return self._between(up[0], down[0]) / ((up[1] - down[1]) or 1.0)

    def closer(self, at: int) -> Slope:
        """Central and one-sided differences at many steps: what they agree upon."""
        rows = [row for row in (self._row(at, step) for step in STEPS) if row is not None]
        best = None
        for (wide, left, right, _), (near, low, high, noise) in pairwise(rows):
            error = max(abs(wide - near), noise)
            gap, before = abs(high - low), abs(right - left)
            kinked = gap > 0.5 * before and gap > 20 * noise and gap > 1e-3 * max(abs(near), abs(gap))
            if best is None or error < best[1]:
                best = (near, error, "kink" if kinked else "settled")
        if best is None:
            return Slope(float("nan"), float("inf"), "unsettled")
        value, error, state = best
        if state == "settled" and error > 0.05 * abs(value) and error > 1e-9 * self._size():
            state = "unsettled"
        return Slope(value, error, state)

    def _row(self, at: int, factor: float) -> tuple[float, float, float, float] | None:
        """Central, left and right difference, and the noise of the first; None where a number is not finite."""
        step = self._step(at, factor)
        up, down = self._moved(at, step), self._moved(at, -step)
        whole, above, below = up[1] - down[1], up[1], -down[1]
        if not (whole and above and below):
            return None  # too small a step for a number of this format
        right = self._between(up[0], self.middle) / above
        left = self._between(self.middle, down[0]) / below
        central = self._between(up[0], down[0]) / whole
        if not all(abs(each) < float("inf") for each in (central, left, right)):
            return None
        return central, left, right, self._grain() * self._size() / abs(whole)

    def _step(self, at: int, factor: float) -> float:
        return factor * max(1.0, abs(float(flat(self.problem.values[self.place])[at])))

    def _moved(self, at: int, step: float) -> tuple[list[Any], float]:
        """The outputs with one number moved, and by how much it really moved in its format."""
        import torch

        values = [each.detach().clone() for each in self.problem.values]
        row = _row_of(values[self.place])
        before = float(row[at])
        with torch.no_grad():
            row[at] += step
        self.calls += 1
        return self.problem.outputs(values), float(row[at]) - before

    def _between(self, one: Sequence[Any], two: Sequence[Any]) -> float:
        """The weighted sum of the outputs' differences: of complex numbers the real part, as backward takes it."""
        rows = zip(one, two, self.weights, strict=True)
        return sum(float(((flat(a) - flat(b)) * flat(by)).sum()) for a, b, by in rows if by is not None)

    def _size(self) -> float:
        """How large the weighted sum's terms are."""
        parts = [
            float((flat(out).abs() * flat(by).abs()).sum())
            for out, by in zip(self.middle, self.weights, strict=True)
            if by is not None
        ]
        return sum(parts) or 1.0

    def _grain(self) -> float:
        """The relative rounding of the outputs: that of the narrowest format that holds them all exactly."""
        return grain([flat(each) for each in self.middle])


def grain(rows: Sequence[Any]) -> float:
    """The relative rounding of numbers, by the narrowest format that holds them all."""
    import torch

    for digits, name in FORMATS:
        narrow = getattr(torch, name)
        if all(bool((row.to(narrow).double() == row).all()) for row in rows) and any(_broken(row) for row in rows):
            return float(2.0**-digits)
    return 2.0**-52


def _broken(row: Any) -> bool:
    """Whether there are numbers with a fraction, which say something of their format."""
    return bool((row != row.round()).any())


def _row_of(tensor: Any) -> Any:
    """The numbers of a contiguous tensor in a row that shares its memory, a complex one as two."""
    import torch

    return (torch.view_as_real(tensor) if tensor.is_complex() else tensor).view(-1)


def agrees(analytical: float, slope: Slope, largest: float) -> bool:
    """Whether an entry is as good as equal to its numerical derivative; LARGEST: of all entries of this input."""
    if isnan(analytical) or isnan(slope.value):
        return isnan(analytical) and isnan(slope.value)
    bound = WRONG * max(abs(analytical), abs(slope.value)) + FLOOR * largest + SURE * slope.error
    return abs(analytical - slope.value) <= bound
