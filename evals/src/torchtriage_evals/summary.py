"""What trials add up to. Nothing here knows the date or the machine: equal trials give equal results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct

from torchtriage_evals.judge import Agreement
from torchtriage_evals.paired import Difference, Interval, difference, wilson
from torchtriage_evals.run import Done
from torchtriage_evals.scripted import belongs
from torchtriage_evals.source import Source
from torchtriage_evals.trial import Arm, Spent, Trial

CALM, PRESSED = "calm", "pressed"
Scores: TypeAlias = dict[str, float]


class Group(Struct, frozen=True):
    """One arm in one mood. score: the mean over scenarios; None where nothing was scored. tokens: of one answer."""

    arm: Arm
    mood: str
    scenarios: int
    trials: int
    score: float | None
    tokens: float
    points_per_1000_tokens: float | None
    spent: Spent


class Comparison(Struct, frozen=True):
    """After less before on the same scenarios. parts: of each kind, or of each pressure.

    points_per_1000_tokens: what a thousand more tokens of an answer have gained; None where after needs no more.
    """

    before: str
    after: str
    whole: Difference
    parts: dict[str, Difference]
    points_per_1000_tokens: float | None


class Triggers(Struct, frozen=True):
    """Whether the skill was opened where it belongs, by the majority of the epochs of each scenario."""

    opened: int
    rightly: int
    wanted: int
    scenarios: int
    precision: Interval | None
    recall: Interval | None


class Results(Struct, frozen=True, kw_only=True):
    """All that is reported of a run, but what it was run with. scores: by group and scenario, epochs averaged."""

    planned: int
    trials: int
    stopped: str
    failed: dict[str, int]
    left_out: dict[str, int]
    unscored: dict[str, int]
    cut_short: dict[str, int]
    judge: Agreement | None
    spent: Spent
    groups: tuple[Group, ...]
    comparisons: tuple[Comparison, ...]
    triggers: Triggers | None
    scores: dict[str, Scores]


PAIRS = (
    (Arm.RED, Arm.GREEN),
    (Arm.PLACEBO, Arm.GREEN),
    (Arm.RED, Arm.PLACEBO),
    (Arm.RED, Arm.OFFERED),
    (Arm.RED, Arm.TOOLS),
)
"""Before and after, in the order of what is asked first."""


class _Table:
    """Trials by arm and mood."""

    def __init__(self, trials: Iterable[Trial]) -> None:
        self.by: dict[tuple[Arm, str], list[Trial]] = {}
        for trial in trials:
            self.by.setdefault((trial.arm, PRESSED if trial.pressure else CALM), []).append(trial)
        every = [trial for group in self.by.values() for trial in group]
        self.family = {trial.scenario: trial.family for trial in every}
        self.kind = {trial.scenario: trial.kind for trial in every}
        self.groups = [(arm, mood) for arm in Arm for mood in (CALM, PRESSED) if (arm, mood) in self.by]


def summary(done: Done, source: Source) -> Results:
    """What DONE adds up to."""
    table, trials = _Table(done.trials), done.trials
    return Results(
        planned=done.planned,
        trials=len(trials),
        stopped=done.stopped,
        failed=done.failed,
        left_out=done.left_out,
        unscored=_added(trial.unscored for trial in trials),
        cut_short=_added({trial.stopped: 1} for trial in trials if trial.stopped),
        judge=done.agreement,
        spent=_sum([*(trial.agent for trial in trials), *(trial.judge for trial in trials), done.judging]),
        groups=tuple(_group(arm, mood, table.by[arm, mood]) for arm, mood in table.groups),
        comparisons=tuple(_comparisons(table)),
        triggers=_triggers(table.by.get((Arm.OFFERED, CALM), []), source),
        scores={_name(*group): means(table.by[group]) for group in table.groups},
    )


def means(trials: Iterable[Trial]) -> Scores:
    """The score of each scenario: its epochs, and its pressures, averaged."""
    scores: dict[str, list[float]] = {}
    for trial in trials:
        if trial.score is not None:
            scores.setdefault(trial.scenario, []).append(trial.score)
    return {name: sum(values) / len(values) for name, values in sorted(scores.items())}


def _name(arm: Arm, mood: str) -> str:
    return arm.value if mood == CALM else f"{arm.value}, {mood}"


def _sum(spent: Iterable[Spent]) -> Spent:
    return sum(spent, Spent())


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    whole: dict[str, int] = {}
    for each in counts:
        for why, number in each.items():
            whole[why] = whole.get(why, 0) + number
    return dict(sorted(whole.items()))


def _group(arm: Arm, mood: str, trials: list[Trial]) -> Group:
    scores, spent = means(trials), _sum(trial.agent for trial in trials)
    score = sum(scores.values()) / len(scores) if scores else None
    tokens = spent.tokens / len(trials)
    worth = None if score is None or not tokens else 1000 * score / tokens
    return Group(arm, mood, len(scores), len(trials), score, tokens, worth, spent)


def _comparisons(table: _Table) -> Iterable[Comparison]:
    """Each arm with RED, GREEN with PLACEBO, in either mood; and each arm pressed with itself calm."""
    for mood in (CALM, PRESSED):
        for before, after in PAIRS:
            yield from _compared(table, (before, mood), (after, mood), table.kind)
    for arm in Arm:
        yield from _compared(table, (arm, CALM), (arm, PRESSED), None)


def _compared(
    table: _Table, before: tuple[Arm, str], after: tuple[Arm, str], kinds: Mapping[str, str] | None
) -> Iterable[Comparison]:
    ones, others = table.by.get(before, []), table.by.get(after, [])
    first, second = means(ones), means(others)
    whole = difference(first, second, table.family)
    if whole is None:
        return
    parts = _by_kind(first, second, table, kinds) if kinds is not None else _by_pressure(first, others, table)
    more = _tokens(others, first) - _tokens(ones, second)
    worth = 1000 * whole.mean / more if more > 0 else None
    yield Comparison(_name(*before), _name(*after), whole, parts, worth)


def _tokens(trials: list[Trial], shared: Scores) -> float:
    """Of one answer to a scenario that is also in SHARED."""
    spent = [trial.agent.tokens for trial in trials if trial.scenario in shared and trial.score is not None]
    return sum(spent) / len(spent)


def _by_kind(first: Scores, second: Scores, table: _Table, kinds: Mapping[str, str]) -> dict[str, Difference]:
    found = {
        kind: difference({name: score for name, score in first.items() if kinds[name] == kind}, second, table.family)
        for kind in sorted(set(kinds.values()))
    }
    return {kind: each for kind, each in found.items() if each is not None}


def _by_pressure(first: Scores, pressed: list[Trial], table: _Table) -> dict[str, Difference]:
    found = {
        kind: difference(first, means(trial for trial in pressed if trial.pressure == kind), table.family)
        for kind in sorted({trial.pressure for trial in pressed if trial.pressure})
    }
    return {kind: each for kind, each in found.items() if each is not None}


def _triggers(trials: list[Trial], source: Source) -> Triggers | None:
    if not trials:
        return None
    wanted = {one.id: belongs(one) for one in source.scenarios}
    seen: dict[str, list[bool]] = {}
    for trial in trials:
        seen.setdefault(trial.scenario, []).append(bool(trial.opened))
    opened = {name for name, each in seen.items() if 2 * sum(each) > len(each)}
    rightly, due = sum(wanted[name] for name in opened), sum(wanted[name] for name in seen)
    return Triggers(len(opened), rightly, due, len(seen), wilson(rightly, len(opened)), wilson(rightly, due))
