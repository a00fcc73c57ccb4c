"""Results in words, for every form of report: what happened, what it says, what was not seen."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage_evals.paired import FEWEST, Difference, Interval
from torchtriage_evals.report import Report
from torchtriage_evals.summary import Triggers
from torchtriage_evals.trial import Spent


def verdict(report: Report) -> str:
    """One sentence: what the comparison shows, or that it shows nothing."""
    found = report.headline
    if found is None:
        groups = [group for group in report.results.groups if group.score is not None]
        return f"{groups[0].arm.value.upper()} scores {groups[0].score:.2f}." if groups else "Nothing was scored."
    whole = found.whole
    names = f"{found.after.upper()} less {found.before.upper()}"
    if whole.interval is None:
        return (
            f"{names}: {whole.mean:+.2f}; {whole.families} families are too few for an interval ({FEWEST} are needed)."
        )
    if whole.interval.low <= 0 <= whole.interval.high:
        return f"No difference is shown: {names} {signed(whole)}."
    return f"{'Better' if whole.mean > 0 else 'Worse'}: {names} {signed(whole)}."


def signed(whole: Difference) -> str:
    """A difference and its interval."""
    return f"{whole.mean:+.2f} {between(whole.interval, '+.2f')}".strip()


def between(interval: Interval | None, form: str = ".2f") -> str:
    return f"[{interval.low:{form}}, {interval.high:{form}}]" if interval else ""


def money(spent: Spent) -> str:
    return "no price known" if spent.dollars is None else f"${spent.dollars:.4f}"


def worth(points: float | None) -> str:
    return "–" if points is None else f"{points:+.3f}"


def triggers(found: Triggers) -> Iterator[tuple[str, str]]:
    """Precision and recall of opening the skill."""
    for name, of, interval in (("precision", found.opened, found.precision), ("recall", found.wanted, found.recall)):
        yield name, f"{found.rightly} of {of} {between(interval)}".strip()


def unseen(report: Report) -> Iterator[str]:
    """What a reader has to know before believing the rest."""
    about, results = report.about, report.results
    if about.simulated:
        yield "Simulated: a script answered or judged. This tries the program and says nothing about the skill."
    if results.stopped:
        yield f"Partial: {results.stopped} after {results.trials} of {results.planned} trials."
    elif results.trials < results.planned:
        yield f"Partial: {results.trials} of {results.planned} trials have an answer."
    if results.judge is not None and not results.judge.accepted:
        yield f"The judge was not accepted: {results.judge.why}."
    yield from (f"{number} not asked: {why}." for why, number in results.left_out.items())
    yield from (f"{number} without a score: {why}." for why, number in results.unscored.items())
    yield from (f"{number} cut short: {why}." for why, number in results.cut_short.items())
    yield from (f"{number} failed: {why}." for why, number in results.failed.items())


def facts(report: Report) -> Iterator[tuple[str, str]]:
    """What the results hold for."""
    about, spent = report.about, report.results.spent
    yield "model", about.model
    yield "judge", about.judge or "none"
    if report.results.judge is not None:
        yield "judge's agreement", report.results.judge.why
    yield "date", about.date
    yield (
        "scenarios",
        f"{about.scenarios} of {about.families} families, {about.epochs} epochs, hash {about.scenarios_hash}",
    )
    yield "skill", f"torchtriage {about.versions['torchtriage']}, hash {about.skill}"
    yield "spent", f"{spent.tokens_in:,} tokens read, {spent.tokens_out:,} written, {money(spent)}"
    yield "versions", ", ".join(f"{name} {number}" for name, number in sorted(about.versions.items()))
