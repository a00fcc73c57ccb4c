"""Gradients that are not the derivative on purpose: how that is declared, and what is held against the declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .problem import flat

if TYPE_CHECKING:
    from .judging import Judged

RULES = {
    "straight-through": "each entry is that of grad_output, or 0",
    "reversed": "each entry is the derivative times one negative number",
    "scaled": "each entry is the derivative times one positive number",
    "clipped": "each entry has the derivative's sign and at most its size",
}
_WAY = "If that is on purpose, declare it: --expect straight-through, or --reference with what the gradient is to be."
UNDECIDED = {
    "flat": (
        "forward is flat in steps along {name} (numerical derivative 0 at {judged} of {looked} entries) and backward "
        "gives a gradient of its own: straight-through or a surrogate, which no derivative can judge",
        _WAY,
    ),
    "beside-flat": (
        "{name}: analytical {analytical:.6g}, numerical {numerical:.6g} at {entry}, beside an input along which "
        "forward is flat",
        _WAY,
    ),
    "flat-zero": (
        "forward is flat in steps along {name}, and its gradient is 0 as it should be: nothing is trained through it",
        "If it is to be trained through: torchtriage explain no-gradient-by-design.",
    ),
    "none": (
        "backward returns None for {name}, on which the output depends (numerical {numerical:.6g} at {entry}): by "
        "design, or forgotten",
        "Say which by make_inputs(): requires_grad=True on the inputs that need a gradient, and only on these.",
    ),
    "symmetric": (
        "{name} is a symmetric matrix, whose entries cannot be moved one by one",
        "Name a function that makes it symmetric by itself, such as lambda a: f(a + a.mT).",
    ),
    "unsettled": (
        "the differences for {name} do not settle at {looked} entries ({kinks} of them at kinks): noise, or jumps",
        "Give inputs away from kinks by --inputs, or a --reference.",
    ),
}  # fmt: skip
"""(why, what would unblock it) by the state of an input."""


def holds(expect: str, judged: Judged) -> bool:
    """Whether the gradients are what was declared, for all inputs that differ from the derivative."""
    rows = [row for row in judged.rows if row["state"] in {"wrong", "flat", "beside-flat"}]
    return all(_holds(expect, row, judged) for row in rows)


def _holds(expect: str, row: dict[str, Any], judged: Judged) -> bool:
    gradient = flat(judged.gradients[row["place"]])
    numbers = [float(gradient[at]) for at in row["positions"]]
    if expect == "straight-through":
        return any(_handed_on(gradient, by) for by in judged.weights if by is not None)
    pairs = list(zip(numbers, row["truth"], strict=True))
    if expect == "clipped":
        return all(a * t >= 0 and abs(a) <= abs(t) * 1.001 for a, t in pairs)
    large = max(pairs, key=lambda pair: abs(pair[1]))
    factor = large[0] / large[1] if large[1] else 0.0
    bound = 1e-3 * max(abs(a) for a in numbers)
    fits = all(abs(a - factor * t) <= bound for a, t in pairs)
    return fits and (factor < 0 if expect == "reversed" else factor > 0)


def _handed_on(gradient: Any, by: Any) -> bool:
    row = flat(by)
    if row.shape != gradient.shape:
        return False
    return bool(((gradient == 0) | ((gradient - row).abs() <= 1e-6 * row.abs())).all())
