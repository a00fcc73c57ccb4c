"""Traces of one job before a change and after it: the seconds of each phase, and the kernels that changed most."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from torchtriage.core.plain import number, within
from torchtriage.diagnose.pace import Change, Doubt, Pair, Table, changed

TOP = 12
"""Kernels and operators that are told."""
LEAST = 0.002
"""Of the longer step: what changes by less is not worth a row."""


class Spent(Struct, frozen=True):
    """Calls and seconds of one name in the mean of a step of a rank."""

    count: float
    seconds: float


class Named(Struct, frozen=True):
    """A kernel or an operator. change: "new" and "gone" where the other side's table is whole, else as of a figure.

    before, after: None where it is not there. why: what is known where a table is not whole.
    """

    name: str
    change: str
    before: Spent | None
    after: Spent | None
    why: str = ""

    @property
    def moved(self) -> float:
        """Seconds of a step, more or less."""
        one, two = (each.seconds if each else 0.0 for each in (self.before, self.after))
        return two - one


class Traced(Struct, frozen=True):
    """ranks, steps: that were recorded. seconds: of a step by phase, medians. what: "kernels", or without a device
    "operators", whose own time counts; rows: those that changed most.
    """

    ranks: Pair
    steps: Pair
    seconds: dict[str, Pair]
    what: str
    rows: tuple[Named, ...]


def traced(before: Table, after: Table) -> Traced | None:
    """None where one of the two was not read from traces."""
    one, two = (within(each, "trace") for each in (before, after))
    if not isinstance(one, dict) or not isinstance(two, dict):
        return None
    what = "kernels" if any(_rows(each, "kernels") for each in (one, two)) else "operators"
    rows = sorted(filter(None, _named(one, two, what)), key=lambda each: (-abs(each.moved), each.name))
    least = LEAST * max(*(sum(_phases(each).values()) for each in (one, two)), 1e-12)
    kept = tuple(each for each in rows if abs(each.moved) >= least)[:TOP]
    return Traced(_pair(one, two, "ranks"), _pair(one, two, "steps"), _seconds(one, two), what, kept)


def doubts(told: Traced) -> Iterator[Doubt]:
    """Other numbers of ranks do not bar: what is compared is a step of the median rank."""
    before, after = told.ranks
    if before is not None and after is not None and before != after:
        why = (
            "Of a step the median of the ranks is compared, of kernels the mean of a step of a rank; another number of "
            "ranks shares the work in another way"
        )
        yield Doubt("ranks", f"{before:.0f}", f"{after:.0f}", why, bars=False)


def _pair(one: Table, two: Table, name: str) -> Pair:
    return number(within(one, "step", name)), number(within(two, "step", name))


def _phases(side: Table) -> dict[str, float]:
    table = within(side, "step", "seconds")
    told = table.items() if isinstance(table, dict) else ()
    return {str(name): value for name, each in told if (value := number(each)) is not None and 0 <= value < 1e9}


def _seconds(one: Table, two: Table) -> dict[str, Pair]:
    first, later = _phases(one), _phases(two)
    return {
        name: (first.get(name), later.get(name)) for name in (*first, *(each for each in later if each not in first))
    }


def _rows(side: Table, what: str) -> dict[str, Spent]:
    rows = within(side, what, "rows")
    found: dict[str, Spent] = {}
    for row in rows if isinstance(rows, list | tuple) else ():
        count, seconds = number(within(row, "count")), number(within(row, "seconds"))
        if isinstance(name := within(row, "name"), str) and count is not None and seconds is not None and seconds >= 0:
            found.setdefault(name, Spent(count, seconds))
    return found


def _named(one: Table, two: Table, what: str) -> Iterator[Named | None]:
    first, later = _rows(one, what), _rows(two, what)
    for name in (*first, *(each for each in later if each not in first)):
        before, after = first.get(name), later.get(name)
        if before and after:
            yield Named(name, changed(before.seconds, after.seconds).value, before, after)
        elif before:
            yield _alone(name, before, None, "gone", _least(two, what, later))
        else:
            yield _alone(name, None, after, "new", _least(one, what, first))


def _least(side: Table, what: str, rows: dict[str, Spent]) -> tuple[int, float] | None:
    """How many names are known of a table that is not whole, and the seconds of the shortest; None of a whole one."""
    if within(side, what, "whole") is True:
        return None
    return len(rows), min((each.seconds for each in rows.values()), default=float("inf"))


def _alone(
    name: str, before: Spent | None, after: Spent | None, fate: str, cut: tuple[int, float] | None
) -> Named | None:
    """What one side does not hold is gone, or new, where that side's table is whole; else it is shorter than all in it,
    and None where it was so before.
    """
    if cut is None:
        return Named(name, fate, before, after)
    known, seconds = cut
    own = before or after
    if own is None or own.seconds <= seconds:
        return None
    why = f"not among the {known} longest {'after' if before else 'before'}"
    return Named(name, (Change.SMALLER if before else Change.LARGER).value, before, after, why)
