"""What a check gives: right, wrong, unseen (with why and what would unblock it), absent (nothing to look at)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .problem import differ, drawn, flat, settle, worst

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .problem import Problem

Result = dict[str, Any]
SAME = 1e-6
"""Of the largest entry: gradients of one function that was called in two ways differ by rounding only."""


class Base:
    """The function at the point at which its gradient is right: what all other situations are held against."""

    def __init__(self, given: Any, problem: Problem, weights: Sequence[Any], gradients: Sequence[Any]) -> None:
        self.given, self.subject = given, given.subject
        self.problem, self.weights, self.gradients = problem, list(weights), list(gradients)
        settle()
        before = drawn()
        self.outputs = problem.outputs()
        self.is_random = drawn() != before
        sizes = [float(flat(each).abs().max()) for each in self.gradients if each is not None and each.numel()]
        self.floor = 1e-6 * max([*sizes, 1e-24])
        narrow = any(each.element_size() < (16 if each.is_complex() else 8) for each in problem.values)
        self.same = 1e-3 if narrow else SAME

    def unlike(
        self, gradients: Sequence[Any], words: str, against: Sequence[Any] | None = None, method: str = "backward"
    ) -> Result | None:
        """The finding that GRADIENTS are not those of the point (or AGAINST), with the entry that differs most."""
        known = list(self.gradients if against is None else against)
        place = differ(gradients, known, self.same, self.floor)
        if place is None:
            return None
        return self.between(place, gradients[place], known[place], words, method)

    def between(self, place: int, found: Any, known: Any, words: str, method: str = "backward") -> Result:
        """A finding about one input: FOUND where KNOWN is right."""
        row = {"input": self.problem.numbers[place], "name": self.problem.names[place]}
        if found is None or known is None or found.shape != known.shape:
            how = "None" if found is None else f"of shape {tuple(found.shape)}" if known is not None else "a tensor"
            return wrong(f"{words}: the gradient of {row['name']} is {how}", method, **row)
        entry, analytical, numerical = worst(found, known)
        row |= {"entry": entry, "analytical": analytical, "numerical": numerical}
        zero = not bool(flat(found).any())
        return wrong(words, method, **row, **({"explains": "cut"} if zero else {}))


def wrong(says: str, method: str = "backward", **more: Any) -> Result:
    """A sure mistake; METHOD of the Function is where it lies."""
    return {"state": "wrong", "says": says, "method": method, **more}


def right(note: str = "") -> Result:
    return {"state": "right", "note": note}


def absent(note: str) -> Result:
    """There is nothing of this kind to look at."""
    return {"state": "absent", "note": note}


def unseen(why: str, unblock: str) -> Result:
    return {"state": "unseen", "why": why, "unblock": unblock}
