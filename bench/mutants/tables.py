"""The tables of a judgement: by operator, program and class of harm, for check, run and both, with intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from corpus import share

from mutants import judge
from mutants.catalogue import Mutant
from mutants.judge import CHECK, EXPERIMENT, RUN, SPEED, Heard

TRIABLE = ("optimisation", "hyperparameters", "data")  # themes of operators whose faults an experiment may show
TOOLS = {CHECK: CHECK, RUN: RUN, "either": "", EXPERIMENT: EXPERIMENT}


@dataclass(frozen=True)
class Row:
    """A mutant that hurts, how, and what was said of it."""

    mutant: Mutant
    harm: str
    heard: Heard


def summary(rows: list[Row], healthy: Iterable[Heard], title: str) -> Iterator[str]:
    """Found, found at its place, false, and false alarms, for each tool."""
    yield f"{title}: {len(rows)} mutants that hurt"
    for name, tool in TOOLS.items():
        yield line(f"  {name} finds", [judge.found(row.heard, row.mutant, tool) for row in rows])
        yield line("    at the place", [judge.placed(row.heard, row.mutant, tool) for row in rows])
        yield line("    says something false", [bool(judge.false(row.heard, row.mutant, tool)) for row in rows])
    described = [row for row in rows if row.mutant.operator.accepts]
    yield line("  either, where a page describes it", [judge.found(row.heard, row.mutant, "") for row in described])
    yield line("  run says nothing above info", [not row.heard.run for row in rows])
    yield line("    and that all is ok", [row.heard.verdict.startswith("ok") for row in rows])
    lost = [row for row in rows if row.heard.code is None]
    if lost:
        yield f"  run ran out of time in {len(lost)}"
    healthy = list(healthy)
    for name, tool in TOOLS.items():
        if healthy:
            yield line(f"false alarms on healthy runs, {name}", [bool(heard.said(tool)) for heard in healthy])


def tried(rows: list[Row]) -> Iterator[str]:
    """Of what neither `check` nor `run` has found in optimisation, data and speed: what an experiment names."""
    left = [
        row
        for row in rows
        if (row.mutant.operator.theme in TRIABLE or row.harm == SPEED) and not judge.found(row.heard, row.mutant, "")
    ]
    if left and all(len(row.heard.tools) == len(TOOLS) - 1 for row in left):
        yield "of optimisation, data and speed, what neither check nor run finds:"
        yield line("  experiment finds", [judge.found(row.heard, row.mutant, EXPERIMENT) for row in left])
        yield line("    says something false", [bool(judge.false(row.heard, row.mutant, EXPERIMENT)) for row in left])


def line(title: str, values: list[bool]) -> str:
    return f"{title:<40} {share(sum(values), len(values))}"


def table(rows: list[Row], title: str, key: Callable[[Row], str]) -> Iterator[str]:
    """One line for each value of KEY: mutants, how many each tool finds, at the place, and says something false of."""
    groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    yield f"{title:<34} {'hurt':>5} {'check':>6} {'run':>6} {'either':>6} {'tried':>6} {'place':>6} {'false':>6}"
    for name, own in sorted(groups.items()):
        counts = [sum(judge.found(row.heard, row.mutant, tool) for row in own) for tool in TOOLS.values()]
        counts.append(sum(judge.placed(row.heard, row.mutant, "") for row in own))
        counts.append(sum(bool(judge.false(row.heard, row.mutant, "")) for row in own))
        yield f"{name:<34} {len(own):>5} " + " ".join(f"{count:>6}" for count in counts)


KEYS: dict[str, Callable[[Row], str]] = {
    "class of harm": lambda row: row.harm,
    "theme": lambda row: row.mutant.operator.theme,
    "composed": lambda row: row.mutant.composed or "in its own place",
    "program": lambda row: row.mutant.program,
    "operator": lambda row: row.mutant.operator.name,
}


def tables(rows: list[Row], wanted: Iterable[str]) -> Iterator[str]:
    for title in wanted:
        yield ""
        yield from table(rows, title, KEYS[title])


def alarms(healthy: Iterable[Heard]) -> Iterator[str]:
    """What was said of healthy programs, by name: every one of them is to be defended or mended."""
    for heard in healthy:
        for tool in (CHECK, RUN, EXPERIMENT):
            for said in heard.said(tool):
                where = ", ".join(f"{file}:{first} {module}".strip() for file, first, _, module in said.places[:2])
                yield f"  {heard.name}: {tool} says {said.slug} at {where}"


def changes(before: dict[str, Row], after: dict[str, Row]) -> Iterator[str]:
    """Which mutants were found before and are not now, or the other way; those set aside only as sums."""
    both = sorted(before.keys() & after.keys())
    aside: dict[str, int] = defaultdict(int)
    for name in both:
        old, new = _answer(before[name]), _answer(after[name])
        if old != new and after[name].mutant.is_aside:
            aside[f"{old} → {new}"] += 1
        elif old != new:
            yield f"{name}: {old} → {new}"
    yield from (f"set aside, {number} mutants: {change}" for change, number in sorted(aside.items()))
    yield f"{len(both)} mutants in both; {len(after.keys() - before.keys())} only after"


def _answer(row: Row) -> str:
    found = [name for name, tool in (("check", CHECK), ("run", RUN)) if judge.found(row.heard, row.mutant, tool)]
    wrong = ", but something false" if judge.false(row.heard, row.mutant, "") else ""
    return (" and ".join(found) or "silent") + wrong
