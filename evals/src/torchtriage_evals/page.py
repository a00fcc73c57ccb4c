"""The report as one HTML file that needs nothing else: no script, no network; what came from models is escaped."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup
from msgspec import Struct

from torchtriage_evals import words
from torchtriage_evals.paired import Difference
from torchtriage_evals.report import Report

HERE = Path(__file__).parent
WIDE = 1000  # of the drawing, from -1 to 1


class Row(Struct, frozen=True):
    """One difference: its words, and where its point and interval stand in the drawing, 0 to WIDE."""

    name: str
    inner: bool
    found: Difference
    said: str
    worth: str
    at: float
    low: float
    high: float


def render(report: Report) -> str:
    """REPORT as an HTML page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    style = (HERE / "page.css").read_text(encoding="utf-8")
    made = b64encode(sha256(style.encode()).digest()).decode()
    places = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return places.get_template("page.html.j2").render(
        report=report,
        verdict=words.verdict(report),
        unseen=list(words.unseen(report)),
        facts=list(words.facts(report)),
        triggers=list(words.triggers(report.results.triggers)) if report.results.triggers else [],
        rows=_rows(report),
        worse=report.headline.whole.worse if report.headline else (),
        scores=_scores(report),
        words=words,
        wide=WIDE,
        style=Markup(style),  # noqa: S704 - our own file
        policy=f"default-src 'none'; style-src 'sha256-{made}'; base-uri 'none'; form-action 'none'",
    )


def _rows(report: Report) -> list[Row]:
    rows = []
    for one in report.results.comparisons:
        rows.append(
            _row(f"{one.after} − {one.before}", one.whole, words.worth(one.points_per_1000_tokens), inner=False)
        )
        if len(one.parts) > 1:
            rows += [_row(name, part, "", inner=True) for name, part in one.parts.items()]
    return rows


def _row(name: str, found: Difference, worth: str, *, inner: bool) -> Row:
    low, high = (found.interval.low, found.interval.high) if found.interval else (found.mean, found.mean)
    at, start, end = (round(_place(value), 1) for value in (found.mean, low, high))
    return Row(name, inner, found, words.signed(found), worth, at, start, end)


def _place(value: float) -> float:
    return (max(-1.0, min(1.0, value)) + 1) / 2 * WIDE


def _scores(report: Report) -> list[tuple[str, list[str]]]:
    scores = report.results.scores
    names = sorted({name for group in scores.values() for name in group})
    return [(name, [f"{g[name]:.2f}" if name in g else "–" for g in scores.values()]) for name in names]
