"""The report on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtriage_evals import words
from torchtriage_evals.report import Report

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WORSE = 10  # scenarios that lost, at most


def show(report: Report, console: Console) -> None:
    """Prints REPORT. What came from models is text: rich sees no markup in it."""
    console.print(words.verdict(report), style="bold", markup=False, highlight=False)
    for line in words.unseen(report):
        console.print(f"! {line}", style="yellow", markup=False, highlight=False)
    for table in (_groups(report), _comparisons(report), _triggers(report), _facts(report)):
        if table.row_count:
            console.print()
            console.print(table)
    _worse(report, console)


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        table.add_column(name, justify="left" if index == 0 else "right")
    return table


def _groups(report: Report) -> Table:
    table = _table("arm", "scenarios", "trials", "score", "tokens each", "points/1,000 tokens", "cost")
    for one in report.results.groups:
        name = one.arm.value if one.mood == "calm" else f"{one.arm.value}, {one.mood}"
        score = "–" if one.score is None else f"{one.score:.3f}"
        row = (
            str(one.scenarios),
            str(one.trials),
            score,
            f"{one.tokens:,.0f}",
            words.worth(one.points_per_1000_tokens),
        )
        table.add_row(name, *row, words.money(one.spent))
    return table


def _comparisons(report: Report) -> Table:
    table = _table("after − before", "scenarios", "difference, 95 %", "won", "lost", "points/1,000 more tokens")
    for one in report.results.comparisons:
        rows = [(f"{one.after} − {one.before}", one.whole, words.worth(one.points_per_1000_tokens))]
        rows += [(f"  {name}", part, "") for name, part in one.parts.items() if len(one.parts) > 1]
        for name, each, worth in rows:
            table.add_row(name, str(each.scenarios), words.signed(each), str(each.wins), str(each.losses), worth)
    return table


def _triggers(report: Report) -> Table:
    table = _table("skill opened", "95 %")
    if report.results.triggers is not None:
        for row in words.triggers(report.results.triggers):
            table.add_row(*row)
    return table


def _facts(report: Report) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
    for name, said in words.facts(report):
        table.add_row(Text(name), Text(said))
    return table


def _worse(report: Report, console: Console) -> None:
    found = report.headline
    worse = found.whole.worse if found else ()
    if worse:
        shown = ", ".join(f"{name} ({loss:+.2f})" for name, loss in worse[:WORSE])
        more = f" and {len(worse) - WORSE} more in report.json" if len(worse) > WORSE else ""
        console.print(f"Got worse: {shown}{more}", markup=False, highlight=False)
