"""Adds a run to the table of results in the documentation: a whole run of a real model, or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torchtriage import TriageError
from torchtriage_evals import words
from torchtriage_evals.report import Report, read
from torchtriage_evals.summary import Comparison
from torchtriage_evals.trial import Arm

END = "<!-- end of results -->"


def add(path: Path, page: Path) -> str:
    """Puts the report at PATH into PAGE; says what was done. Raises TriageError for one that may not."""
    report = read(path)
    for why in _refusals(report):
        do = "Publish a whole run of a real model that compares red and green."
        raise TriageError(f"this run cannot be published: {why}", str(path), do)
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    if text.count(END) != 1:
        raise TriageError(f"no line {END}", str(page), "Name the page with the table of results: docs/evaluation.md.")
    line = row(report)
    if line in text:
        return f"{page} has this run already."
    page.write_text(text.replace(END, f"{line}\n{END}"), encoding="utf-8")
    return f"Added to {page}."


def _refusals(report: Report) -> Iterator[str]:
    results = report.results
    if report.about.simulated:
        yield "it is simulated"
    if results.stopped or results.trials < results.planned:
        yield f"it is partial, {results.trials} of {results.planned} trials"
    if results.judge is not None and not results.judge.accepted:
        yield f"its judge was not accepted, {results.judge.why}"
    if not any(_is_compared(one) for one in results.comparisons):
        yield "it has no difference of green and red with an interval"


def _is_compared(one: Comparison) -> bool:
    return (one.before, one.after) == (Arm.RED.value, Arm.GREEN.value) and one.whole.interval is not None


def compared(report: Report) -> Comparison:
    """GREEN less RED, with its interval: what is published."""
    return next(one for one in report.results.comparisons if _is_compared(one))


def row(report: Report) -> str:
    """One line of the table."""
    about, found = report.about, compared(report)
    scores = {group.arm: group.score for group in report.results.groups if group.mood == "calm"}
    cells = (
        about.date,
        about.model,
        about.judge or "none",
        f"{about.versions['torchtriage']} ({about.skill})",
        f"{found.whole.scenarios} × {about.epochs} ({about.scenarios_hash})",
        *(_score(scores.get(arm)) for arm in (Arm.RED, Arm.PLACEBO, Arm.GREEN)),
        words.signed(found.whole),
        f"{found.whole.wins} / {found.whole.losses}",
        words.worth(found.points_per_1000_tokens),
        words.money(report.results.spent),
    )
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"
