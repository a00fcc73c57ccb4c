"""The ranks of a job on a terminal: a row for each, as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from torchtriage.report.outline import Outline
from torchtriage.report.ranks import Column, Side
from torchtriage.report.text import count

SHOWN = 8
"""Rows on a terminal."""
_GAP = 2
_WORDS = {"where", "ended"}  # columns that are set to the left


def ranks(story: Outline, width: int) -> Iterator[RenderableType]:
    """A table that is WIDTH columns wide at most, and below it what sets ranks apart."""
    if story.side is None:
        return
    chosen = _chosen(story.side)
    yield _table(story.side, chosen, width)
    more = story.side.of - len(chosen)
    if more:
        yield Text(f"and {more} more", "dim")
    words = [story.side.note, *story.side.words, story.replicas.words if story.replicas else ""]
    yield from (Text(each) for each in words if each)


def standstill(story: Outline) -> Iterator[RenderableType]:
    """Where each rank of a job that stands still waits or stands."""
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=20)
    grid.add_column(overflow="fold")
    for each in story.hangs[:SHOWN]:
        place = f" ({each.place})" if each.place else ""
        grid.add_row(Text(f"rank {each.ranks}", "bold"), Text(f"{each.stands}{place}"))
    if story.hangs:
        yield grid
    if len(story.hangs) > SHOWN:
        yield Text(f"and {count(len(story.hangs) - SHOWN, 'more place')}, in the case", "dim")


def _chosen(side: Side) -> list[int]:
    """The rows that are printed: those with a mark, then the slowest, then the first ones."""
    order = sorted(range(len(side.marks)), key=lambda row: (not side.marks[row], -side.slower[row]))
    return sorted(order[:SHOWN])


def _table(side: Side, rows: Sequence[int], width: int) -> RenderableType:
    marks = Column("", tuple(side.marks), 8.5)
    columns = [side.columns[0], *([marks] if any(side.marks) else []), *side.columns[1:]]
    kept = _fitting(columns, rows, width)
    grid = Table.grid(padding=(0, _GAP, 0, 0))
    for column in kept:
        grid.add_column(justify="left" if column.name in _WORDS or column is marks else "right", no_wrap=True)
    grid.add_row(*(Text(column.name, "dim") for column in kept))
    for row in rows:
        tone = "bold" if side.marks[row] else ""
        grid.add_row(*(Text(column.cells[row], tone) for column in kept))
    return grid


def _fitting(columns: list[Column], rows: Sequence[int], width: int) -> list[Column]:
    """COLUMNS without those that tell least, until they fit."""
    kept = list(columns)
    while len(kept) > 1 and sum(_wide(column, rows) + _GAP for column in kept) - _GAP > width:
        kept.remove(min(kept, key=lambda column: column.keep))
    return kept


def _wide(column: Column, rows: Sequence[int]) -> int:
    return max(len(column.name), *(len(column.cells[row]) for row in rows))
