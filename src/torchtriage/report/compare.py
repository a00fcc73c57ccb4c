"""What `compare` prints: what became of each finding, and the figures of two runs, as JSON, as text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.evidence import Evidence
from torchtriage.core.finding import Finding
from torchtriage.core.plain import SCHEMA, plain, written
from torchtriage.diagnose.compare import Compared, Comparison, Fate
from torchtriage.diagnose.pace import Change, Interval, Pair, Timing
from torchtriage.diagnose.traced import Named, Traced
from torchtriage.report.figure import figure, measured
from torchtriage.report.markdown import code, quoted
from torchtriage.report.paper import PLAIN, Paper
from torchtriage.report.text import count, line, sentence

# How each fate is to be taken: the names of colours.
TONES = {
    Fate.NEW: "error",
    Fate.LARGER: "error",
    Fate.SAME: "warning",
    Fate.SMALLER: "info",
    Fate.GONE: "good",
    Fate.UNSEEN: "unknown",
}
MOVES = {"new": "error", "larger": "error", "same": "warning", "smaller": "info", "gone": "good"}
_MAPPED = 8  # lines of a mapping that are printed
_PLACES = {"allocated": "allocated on the device", "reserved": "reserved on the device", "rss": "on the host"}


def as_json(told: Comparison) -> str:
    """TOLD as JSON: a list of findings for each fate, and the figures of the runs before and after."""
    runs = told.runs
    return written(
        {
            "schema": SCHEMA,
            **{fate.value: [_row(each) for each in told.of(fate)] for fate in Fate},
            "step_time": plain(runs.timing),
            "shares": {name: _sides(pair) for name, pair in runs.shares.items()},
            "memory": {name: _sides(pair) for name, pair in runs.memory.items()},
            **(_traced(told.traced) if told.traced else {}),
            **({"keys": plain(told.keys)} if told.keys else {}),
            "comparable": runs.alike,
            "doubts": plain(runs.doubts),
        }
    )


def _traced(told: Traced) -> dict[str, Any]:
    """Seconds of a step by phase, medians; kernels or operators in the mean of a step of a rank."""
    return {
        "ranks": _sides(told.ranks),
        "steps": _sides(told.steps),
        "seconds": {name: _sides(pair) for name, pair in told.seconds.items()},
        told.what: [
            {
                "name": each.name,
                "change": each.change,
                "before": plain(each.before),
                "after": plain(each.after),
                "why": each.why,
            }
            for each in told.rows
        ],
    }


def _sides(pair: Pair) -> dict[str, float | None]:
    return dict(zip(("before", "after"), pair, strict=True))


def _row(each: Compared) -> dict[str, Any]:
    finding = each.finding
    return {
        "fault": finding.fault.slug,
        "specialist": finding.fault.specialist,
        "severity": finding.fault.severity.value,
        "fingerprint": finding.fingerprint,
        "title": finding.fault.title,
        "before": _side(each.before, each.figures[0]),
        "after": _side(each.after, each.figures[1]),
        "why": each.why,
    }


def _side(finding: Finding | None, measure: Evidence | None) -> dict[str, Any] | None:
    """One side's figure, with its place; a figure below the sign stands there although nothing was found."""
    item = measure or (finding.evidence[0] if finding else None)
    if item is None:
        return None
    return {"found": finding is not None, **{name: plain(getattr(item, name)) for name in _SAID}}


_SAID = ("value", "unit", "spread", "fact", "place")


def render(told: Comparison, paper: Paper = PLAIN) -> str:
    """TOLD as text: Verdict, What changed, Figures, Not comparable."""
    body = [paper.ink("Verdict", "bold"), *paper.fold(verdict(told), 2), ""]
    if told.outcomes:
        body += [
            paper.ink("What changed", "bold"),
            *(part for each in told.outcomes for part in _change(each, paper)),
            "",
        ]
    rows = list(figures(told))
    if rows:
        wide = max(len(name) for name, _ in rows)
        body.append(paper.ink("Figures", "bold"))
        body += [folded for name, said in rows for folded in paper.fold(said, 2, mark=f"{name:<{wide}}  ")]
        body.append("")
    if told.traced and told.traced.rows:
        body.append(paper.ink(heading(told.traced), "bold"))
        body += [part for each in told.traced.rows for part in _row_of(each, paper)] + [""]
    if told.keys:
        body += [paper.ink("Keys", "bold"), *paper.items(keys(told), 2), ""]
    if told.runs.doubts:
        body += [paper.ink("Not comparable" if not told.runs.alike else "To be kept in mind", "bold")]
        body += [*paper.items(doubts(told), 2), ""]
    return "\n".join(body).rstrip("\n") + "\n"


def keys(told: Comparison) -> Iterator[str]:
    """Of two checkpoints how the keys of the one become those of the other; of the mapping the first lines."""
    yield sentence(line(str(told.keys.get("said", ""))))
    renamed = told.keys.get("renamed") or {}
    yield from (f"{line(str(one))} → {line(str(two))}" for one, two in list(renamed.items())[:_MAPPED])
    if len(renamed) > _MAPPED:
        yield f"{len(renamed) - _MAPPED:,} more: see --json"
    for side, name in (("before", "only_a"), ("after", "only_b")):
        if left := told.keys.get(name):
            rest = f" and {len(left) - _MAPPED:,} more" if len(left) > _MAPPED else ""
            yield f"only {side}: {', '.join(line(str(key)) for key in left[:_MAPPED])}{rest}"
    yield from (line(str(each)) for each in told.keys.get("parts") or ())


def heading(told: Traced) -> str:
    """What the table of names holds; of traces without a device, operators without those that they called."""
    several = any(ranks is not None and ranks > 1 for ranks in told.ranks)
    return f"{told.what.capitalize()} that changed most, in the mean of a step{' of a rank' if several else ''}"


def _row_of(each: Named, paper: Paper) -> Iterator[str]:
    first, *more = paper.fold(f"{spent(each)}  {line(each.name)}", 2, mark=f"{each.change:<9}")
    yield first.replace(each.change, paper.ink(each.change, MOVES[each.change]), 1)
    yield from more


def spent(each: Named) -> str:
    """Seconds and calls before and after."""
    absent = each.why or "none"
    return " → ".join(
        f"{figure(side.seconds, 's')} in {_calls(side.count)}" if side else absent for side in (each.before, each.after)
    )


def _calls(number: float) -> str:
    return "1 call" if number == 1 else f"{figure(number)} calls"


def _change(each: Compared, paper: Paper) -> Iterator[str]:
    finding, fate = each.finding, each.fate.value
    head = f"{finding.fault.slug}: {line(finding.fault.title)}"
    first, *more = paper.fold(head, 2, mark=f"{fate:<9}")
    yield first.replace(fate, paper.ink(fate, TONES[each.fate]), 1)
    yield from more
    for said in details(each):
        yield from paper.fold(said, 11)


def details(each: Compared) -> Iterator[str]:
    """The place, the figures and what keeps one from saying more."""
    places = [line(str(found.evidence[0].place)) for found in (each.before, each.after) if found]
    yield " → ".join(dict.fromkeys(places))
    sides = [line(measured(item)) if item else "" for item in each.figures]
    if any(sides):
        absent = "not found" if each.fate in (Fate.GONE, Fate.NEW) else "not measured"
        yield " → ".join(said or absent for said in sides)
    if each.why:
        yield sentence(each.why)


def verdict(told: Comparison) -> str:
    """How many findings came to what, and how much faster a step is, in a sentence or two."""
    if not told.looked:
        return "Nothing was examined after the change: nothing can be said."
    counts = [(fate.value, len(told.of(fate))) for fate in Fate]
    parts = [f"{number} {'cannot be told' if name == 'unseen' else name}" for name, number in counts if number]
    said = (
        f"{count(len(told.outcomes), 'finding')}: {', '.join(parts)}." if parts else "No known fault, before or after."
    )
    return f"{said} {_pace(told.runs.timing)}{_unlike(told)}".strip()


def tone(told: Comparison) -> str:
    """How the verdict is to be taken: as the worst fate of a finding is."""
    if not told.looked:
        return "unknown"
    return next(
        (TONES[each.fate] for each in told.outcomes if each.after), "unknown" if told.of(Fate.UNSEEN) else "good"
    )


def _unlike(told: Comparison) -> str:
    named = ", ".join(line(doubt.what) for doubt in told.runs.doubts if doubt.bars)
    return f"The figures of the two are not compared: see {named}." if named else ""


def _pace(timing: Timing | None) -> str:
    """How many times as fast or as slow a step is, with the interval of that."""
    if timing is None or timing.faster is None:
        return ""
    if timing.change is Change.SAME:
        factor = _between(timing.faster_interval, " times as fast")
        return f"A step takes as long as before, as far as can be told{factor}."
    rest = ", but the steps of one run differ by as much: measure both again." if timing.usual else "."
    if timing.faster >= 1:
        return f"A step is {timing.faster:.2f} times as fast{_between(timing.faster_interval)}{rest}"
    ends = timing.faster_interval
    slower = (1 / ends[1], 1 / ends[0]) if ends and ends[0] > 0 else None
    return f"A step is {1 / timing.faster:.2f} times as slow{_between(slower)}{rest}"


def _between(ends: Interval | None, unit: str = "") -> str:
    return f" ({ends[0]:.2f} to {ends[1]:.2f}{unit})" if ends else ""


def figures(told: Comparison) -> Iterator[tuple[str, str]]:
    """Names of figures, and what they were before and after."""
    timing = told.runs.timing
    if timing:
        sides = [(timing.before, timing.before_interval), (timing.after, timing.after_interval)]
        yield "step time", " → ".join(_timed(*side) for side in sides)
    seconds = told.traced.seconds if told.traced else {}
    for name, pair in seconds.items():
        if any(pair):
            yield f"{line(name)}, a step", _arrow(pair, "s")
    for name, pair in told.runs.shares.items():
        if any(pair):
            yield f"{line(name)}, of the step", _arrow(pair, "share")
    for name, pair in told.runs.memory.items():
        yield f"memory, {_PLACES.get(name, name)}", _arrow(pair, "bytes")


def _timed(seconds: float, ends: Interval | None) -> str:
    return figure(seconds, "s") + (f" ({figure(ends[0], 's')} to {figure(ends[1], 's')})" if ends else "")


def _arrow(pair: Pair, unit: str) -> str:
    return " → ".join("not measured" if value is None else figure(value, unit) for value in pair)


def doubts(told: Comparison) -> Iterator[str]:
    for doubt in told.runs.doubts:
        yield f"{line(doubt.what)}: {line(doubt.before)} before, {line(doubt.after)} after. {sentence(doubt.why)}"


def markdown(told: Comparison) -> str:
    """TOLD as GitHub-flavoured Markdown, for the pull request that brings the remedy."""
    body = ["## Verdict", "", quoted(verdict(told)), ""]
    if told.outcomes:
        body += ["## What changed", "", "| | finding | where | before and after |", "|---|---|---|---|"]
        body += [_table_row(each) for each in told.outcomes] + [""]
    rows = list(figures(told))
    if rows:
        body += ["## Figures", "", "| | before → after |", "|---|---:|"]
        body += [f"| {quoted(name)} | {quoted(said)} |" for name, said in rows] + [""]
    if told.traced and told.traced.rows:
        body += [f"## {heading(told.traced)}", "", "| | before → after | name |", "|---|---:|---|"]
        body += [f"| **{each.change}** | {quoted(spent(each))} | {code(each.name)} |" for each in told.traced.rows] + [
            ""
        ]
    if told.keys:
        body += ["## Keys", "", *(f"- {quoted(said)}" for said in keys(told)), ""]
    if told.runs.doubts:
        body += ["## Not comparable" if not told.runs.alike else "## To be kept in mind", ""]
        body += [f"- {quoted(said)}" for said in doubts(told)]
    return "\n".join(body).rstrip("\n") + "\n"


def _table_row(each: Compared) -> str:
    where, *said = details(each)
    told = "<br>".join(map(quoted, said))
    title = f"{code(each.finding.fault.slug)} {quoted(each.finding.fault.title)}"
    return f"| **{each.fate.value}** | {title} | {quoted(where)} | {told} |"
