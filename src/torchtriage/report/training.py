"""What the training itself did, as one sentence: where its loss went, and what a constant guess costs."""

from __future__ import annotations

from math import isfinite
from typing import Any

from torchtriage.core.plain import number, within
from torchtriage.report.text import line

NEAR = 0.02  # of a constant guess: a loss as close to it is its value
GOOD = 0.01  # of a constant guess: a loss below that is too good for fresh batches that came once
ENOUGH = 20  # steps, before which a loss above a constant guess is only the beginning
LONG = 100  # steps after which a loss that has not moved at all is worth a question
NAMED = 4  # optimizers


def sentence(measurements: dict[str, Any]) -> str:
    """The course of the training loss; "" where no loss was seen.

    A loss that rises, stays, or is above a constant guess has the learning rate beside it.
    """
    told = within(measurements, "training")
    losses = within(told, "loss")
    first, last = number(within(losses, "first")), number(within(losses, "last"))
    if within(losses, "course") == "non-finite":
        began = f"; it began at {_figure(first)}" if first is not None and isfinite(first) else ""
        return f"Training loss is not finite at the end{began}{_rate(told)}."
    if first is None or last is None:
        return ""
    several = _several(told)
    if several:
        return several
    return _judged(told, losses, last) or _course(told, losses, first, last)


def advice(measurements: dict[str, Any]) -> str:
    """What to do next about a course that no healthy training has; "" where it may be one."""
    told = within(measurements, "training")
    losses = within(told, "loss")
    first, last = number(within(losses, "first")), number(within(losses, "last"))
    if within(losses, "course") == "non-finite":
        return "Run again with --symptom nan-loss: it finds the first operation whose result is not finite."
    if first is None or last is None or _several(told) or (number(within(told, "steps")) or 0) < ENOUGH:
        return ""
    if _judged(told, losses, last):
        return "Evaluate on data that the training has never seen; print one batch beside its targets."
    if within(losses, "course") in {"rises", "falls-then-rises"}:
        return "Train again with a tenth of the learning rate: if the loss then falls, the rate was too high."
    return _unmoved(told, losses, last)


def _unmoved(told: Any, losses: Any, last: float) -> str:
    """What to do about a loss that is no better than a constant guess, or that has not moved for long."""
    constant = number(within(losses, "constant"))
    if constant is not None and isfinite(constant) and 0 < constant * (1 - NEAR) <= last:
        return (
            "Train on one batch alone, over and over: if its loss does not fall far below a constant guess, the model "
            "cannot learn from its input (`torchtriage explain loss-at-chance`)."
        )
    if within(losses, "course") == "level" and (number(within(told, "steps")) or 0) >= LONG:
        return (
            "Where the loss should still fall, train on one batch alone, over and over: if it stays there too, raise "
            "the learning rate tenfold, and check which parameters the optimizer has."
        )
    return ""


def _judged(told: Any, losses: Any, last: float) -> str:
    """A loss that cannot be, or is too good to be true."""
    floor, constant = number(within(losses, "floor")), number(within(losses, "constant"))
    if floor is not None and last < floor - NEAR * max(abs(floor), abs(constant or 1.0)):
        return f"Training loss is {_figure(last)}, below the least possible value ({_figure(floor)}): check its inputs."
    named = str(within(losses, "constant_of") or "")
    fresh = within(losses, "fresh") is True and (number(within(told, "passes")) or 0) <= 1
    if constant and constant > 0 and named.startswith("entropy") and fresh and last < GOOD * constant:
        return (
            f"Training loss is {_figure(last)} where a constant guess gets {_figure(constant)}: too good for"
            f"{_steps(told)}; check whether the targets stand in the inputs."
        )
    return ""


def _course(told: Any, losses: Any, first: float, last: float) -> str:
    constant, count = number(within(losses, "constant")), number(within(told, "steps")) or 0
    over, rate = f" over{_steps(told)}" if count else "", _rate(told)
    known = constant is not None and isfinite(constant) and constant > 0
    guess = f" (a constant guess: {_figure(constant)})" if known else ""
    word = within(losses, "course")
    if word == "rises":
        return f"Training loss rose from {_figure(first)} to {_figure(last)}{over}{guess}{rate}."
    if word == "falls-then-rises":
        lowest = number(within(losses, "lowest"))
        fell = f"Training loss fell from {_figure(first)} to {_figure(lowest)}"
        return f"{fell} and rose again to {_figure(last)}{over}{guess}{rate}."
    fell = word == "falls"
    moved = f"fell from {_figure(first)} to {_figure(last)}{over}" if fell else f"stayed at {_figure(last)}{over}"
    if constant is not None and known and abs(last - constant) <= NEAR * constant:
        return f"Training loss {moved}, the value of a constant guess ({_figure(constant)}){rate}."
    if constant is not None and known and last > constant and count >= ENOUGH:
        return f"Training loss {moved}, more than a constant guess costs ({_figure(constant)}){rate}."
    return f"Training loss {moved}{guess}." if fell else f"Training loss {moved}{guess}{rate}."


def _several(told: Any) -> str:
    """Losses of several optimizers, which may be opposed: none is held against another."""
    found = within(told, "optimizers")
    rows = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    if len(rows) < 2:
        return ""
    each = []
    for row in rows[:NAMED]:
        first, last = number(row.get("first")), number(row.get("last"))
        ends = f" from {_figure(first)} to {_figure(last)}" if first is not None and last is not None else ""
        each.append(f"{line(str(row.get('optimizer')))}{ends}")
    more = f" and {len(rows) - NAMED} more" if len(rows) > NAMED else ""
    return f"Training losses of {len(rows)} optimizers over{_steps(told)}: {', '.join(each)}{more}."


def _steps(told: Any) -> str:
    count = int(number(within(told, "steps")) or 0)
    return f" {count:,} step{'s' if count != 1 else ''}"


def _rate(told: Any) -> str:
    """The learning rate with the optimizer's name; where a schedule changed it, the highest one too."""
    rate, highest = (number(within(told, "learning_rate", name)) for name in ("last", "highest"))
    if rate is None:
        return ""
    most = f", at most {highest:.3g}" if highest is not None and highest > 1.01 * rate else ""
    named = within(told, "learning_rate", "optimizer")
    return f"; learning rate {rate:.3g}{most}" + (f" ({line(str(named))})" if named else "")


def _figure(value: float | None) -> str:
    """Three digits; thousands with their separators."""
    if value is None:
        return "?"
    value += 0.0  # that of one class alone is -0.0
    if 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:#.3g}" if 0.1 <= abs(value) < 100 else f"{value:.3g}"
