"""How a difference is told: the entry, the value on both sides, by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchtriage.catalog.load import catalog
from torchtriage.examine.trial.resume.trial import Part, Row

TITLES = {
    "buffers": "the model's buffers",
    "weights-rounded": "the model's weights",
    "generator": "the state of a generator of its own",
    "data-order": "the order of the data",
    "data-position": "the place in the data",
    "hyperparameter": "a value that changes during training",
    "training-mode": "train() or eval(), and which parameters are frozen",
    "best-metric": "the best metric so far",
    "unknown": "something that no part of the state shows",
}


@dataclass(frozen=True)
class Missing:
    """A component that the resumed job lacks. fact: the sentence; holder: what the training calls it.

    relative: distance over norm; off: by how much a counter differs.
    """

    slug: str
    holder: str
    fact: str
    relative: float | None = None
    off: float = 0


def title(slug: str) -> str:
    known = catalog().components
    return TITLES.get(slug) or (known[slug].title if slug in known else slug)


def of_part(slug: str, part: Part, rows: tuple[Row, ...] | None = None, more: str = "") -> Missing:
    """The component SLUG, of which ROWS of PART differ."""
    told = rows if rows is not None else part.rows
    worst = max(told, key=lambda row: (row.distance or 0) / (row.norm or 1) if row.distance is not None else 0)
    first = worst if worst.distance else told[0]
    count = f", {len(told)} of {part.entries} entries" if part.entries > 1 else ""
    anew = " (as in a job that begins)" if all(row.anew or row.gone for row in told) else ""
    fact = f"{title(slug)} ({part.holder}{count}) is not what it was{anew}"
    if part.kind != "generator" and not part.kind.startswith("rng-"):  # of which only a mark is known
        fact += f": {of_row(first)}{more}"
    off = _off(told[0])
    return Missing(slug, part.holder, fact, part.relative if any(row.distance for row in told) else None, off)


def of_row(row: Row) -> str:
    """BEFORE and AFTER of one entry."""
    name = row.key or "it"
    if row.gone:
        return f"{name} is {shown(row.before) if row.before is not None else 'there'} uninterrupted and missing resumed"
    if row.new:
        return f"{name} is missing uninterrupted and {shown(row.after) if row.after is not None else 'there'} resumed"
    by = ""
    if row.distance is not None and row.numbers > 1:
        relative = f"by {row.distance / row.norm:.2g} of its norm" if row.norm else f"by {row.distance:.2g}"
        by = f"{row.differing} of {row.numbers} numbers differ, {relative} (L2)"
    if row.before is not None or row.after is not None:
        values = f"{shown(row.before)} uninterrupted and {shown(row.after)} resumed"
        return f"{name} is {values}" + (f"; {by}" if by else "")
    return f"{name}: {by or 'the states differ'}"


def shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(shown(each) for each in value)}]"
    return str(value) if not isinstance(value, str) else repr(value[:60])


def _off(row: Row) -> float:
    numbers = isinstance(row.before, (int, float)) and isinstance(row.after, (int, float))
    return row.after - row.before if numbers and not row.anew else 0
