"""What became of the findings between two cases, as one HTML file that needs nothing else."""

from __future__ import annotations

from markupsafe import Markup
from msgspec import Struct

from torchtriage.diagnose.compare import Compared, Comparison
from torchtriage.diagnose.traced import Named
from torchtriage.report.compare import MOVES, TONES, details, doubts, figures, heading, spent, tone, verdict
from torchtriage.report.html.sheet import environment, policy, style
from torchtriage.report.text import line


class Row(Struct, frozen=True):
    """One finding: what became of it, where it was, and its figures before and after."""

    fate: str
    tone: str
    slug: str
    title: str
    place: str
    said: tuple[str, ...]


def render(told: Comparison) -> str:
    """TOLD as an HTML page without scripts."""
    sheet = style()
    return (
        environment()
        .get_template("compare.html.j2")
        .render(
            verdict=verdict(told),
            tone=tone(told),
            rows=[_row(each) for each in told.outcomes],
            figures=list(figures(told)),
            named=[(each.change, MOVES[each.change], spent(each), line(each.name)) for each in _named(told)],
            heading=heading(told.traced) if told.traced else "",
            doubts=list(doubts(told)),
            alike=told.runs.alike,
            style=Markup(sheet),  # noqa: S704 - our own file
            policy=policy(sheet, []),
        )
    )


def _named(told: Comparison) -> tuple[Named, ...]:
    return told.traced.rows if told.traced else ()


def _row(each: Compared) -> Row:
    place, *said = details(each)
    fault = each.finding.fault
    return Row(each.fate.value, TONES[each.fate], line(fault.slug), line(fault.title), place, tuple(said))
