"""Two cases of one job, before a change and after it: what became of each finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from math import inf
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Inconclusive
from torchtriage.core.finding import Finding
from torchtriage.core.plain import number, within
from torchtriage.diagnose.pace import Change, Runs, changed, runs
from torchtriage.diagnose.traced import Traced, traced
from torchtriage.diagnose.traced import doubts as doubted


class Fate(Enum):
    """What became of a finding. UNSEEN: it was not found again, and nothing shows that it has gone."""

    NEW = "new"
    LARGER = "larger"
    SAME = "same"
    SMALLER = "smaller"
    GONE = "gone"
    UNSEEN = "unseen"


Figures: TypeAlias = tuple[Evidence | None, Evidence | None]


class Compared(Struct, frozen=True):
    """One finding before and after, None where it was not found.

    figures: the evidence of the same measure on both sides; what was measured and lay below the sign counts too.
    why: what keeps one from saying more; "" where nothing does.
    """

    fate: Fate
    before: Finding | None
    after: Finding | None
    figures: Figures = (None, None)
    why: str = ""

    @property
    def finding(self) -> Finding:
        """The later of the two."""
        found = self.after or self.before
        if found is None:
            raise ValueError("neither before nor after: no finding")
        return found


class Comparison(Struct, frozen=True):
    """What became of the findings, in the order of their fates, and the figures of the two runs.

    looked: whether anything has been examined after the change. traced: of two cases from traces. keys: of two
    checkpoints, what differs between the keys of their weights.
    """

    outcomes: tuple[Compared, ...]
    runs: Runs
    looked: bool
    traced: Traced | None = None
    keys: dict[str, Any] = {}

    def of(self, fate: Fate) -> tuple[Compared, ...]:
        """The outcomes of one fate."""
        return tuple(each for each in self.outcomes if each.fate is fate)

    @property
    def remaining(self) -> bool:
        """Whether something is found after the change."""
        return any(each.after for each in self.outcomes)


def compare(before: Case, after: Case) -> Comparison:
    """What became of the findings of BEFORE, and what AFTER has beside them."""
    measured, told = runs(before.measurements, after.measurements), traced(before.measurements, after.measurements)
    if told is not None:
        measured = replace(measured, doubts=(*measured.doubts, *doubted(told)))
    keys = within(after.measurements, "keys")
    if isinstance(keys, dict):  # files have no figures of a run, and nobody looks for them
        measured = replace(measured, doubts=())
    met, gone, new = _matched(before.findings, after.findings)
    outcomes = [_again(one, two, measured) for one, two in met]
    outcomes += [_missing(one, after) for one in gone]
    outcomes += [_new(one, before) for one in new]
    order = list(Fate)
    return Comparison(
        tuple(sorted(outcomes, key=lambda each: order.index(each.fate))),
        measured,
        bool(after.observed or after.findings),
        told,
        keys if isinstance(keys, dict) else {},
    )


_KEYS: tuple[Callable[[Finding], object], ...] = (
    lambda finding: finding.fingerprint,
    lambda finding: (finding.fault.slug, finding.evidence[0].place.path, finding.evidence[0].place.module),
    lambda finding: (finding.fault.slug, finding.evidence[0].place.path),
    lambda finding: (finding.fault.slug, finding.evidence[0].place.rank),
    lambda finding: finding.fault.slug,
)


def _matched(
    before: Sequence[Finding], after: Sequence[Finding]
) -> tuple[list[tuple[Finding, Finding]], list[Finding], list[Finding]]:
    """Findings that are each other's, by fingerprint, then by fault and place, then by fault; and what is left."""
    met: list[tuple[Finding, Finding]] = []
    left, new = list(before), list(after)
    for key in _KEYS:
        for one in tuple(left):
            two = next((each for each in new if key(each) == key(one)), None)
            if two is not None:
                met.append((one, two))
                left.remove(one)
                new.remove(two)
    return met, left, new


def _again(one: Finding, two: Finding, measured: Runs) -> Compared:
    """A finding that was found again: by how much, where that can be said."""
    pair = next(_figures(one.evidence, two.evidence), None)
    if pair is None:
        return Compared(Fate.SAME, one, two)
    (earlier, later), why = pair, _barred(pair, measured)
    values = _strength(earlier), _strength(later)
    change = Change.SAME if why else changed(*values, (earlier.spread, later.spread))
    return Compared(Fate(change.value), one, two, pair, why)


def _barred(pair: tuple[Evidence, Evidence], measured: Runs) -> str:
    """Why the figures of two runs say nothing about one another: one without an interval may add up over the steps."""
    uncertain = any(item.spread is None for item in pair)
    for doubt in measured.doubts:
        if doubt.what != "measurements" and (doubt.bars or (uncertain and doubt.what == "steps")):
            return f"not held against one another: {doubt.what} {doubt.before} before, {doubt.after} after"
    return ""


def _figures(before: Sequence[Evidence], after: Sequence[Evidence]) -> Iterator[tuple[Evidence, Evidence]]:
    """Evidence of the same measure from both sides, the strongest of each, in the order of BEFORE."""
    known = [[item for item in side if item.value is not None] for side in (before, after)]
    for measure in dict.fromkeys((item.detector, item.unit) for item in known[0]):
        earlier, later = ([item for item in side if (item.detector, item.unit) == measure] for side in known)
        if later:
            yield max(earlier, key=_strength), max(later, key=_strength)


def _strength(item: Evidence) -> float:
    return -inf if item.value is None else item.value


def _missing(finding: Finding, after: Case) -> Compared:
    """A finding that was not found again is gone when every detector that had shown it has looked, far enough."""
    why = next(_unseen(finding, after), "")
    seen = [item for outcome in after.observed for item in outcome.evidence]
    first = next((item for item in finding.evidence if item.value is not None), None)
    figures: Figures = next(_figures(finding.evidence, seen), (first, None))
    return Compared(Fate.UNSEEN if why else Fate.GONE, finding, None, figures, why)


def _unseen(finding: Finding, after: Case) -> Iterator[str]:
    for detector in dict.fromkeys(item.detector for item in finding.evidence):
        yield from _blind(detector, after)
    steps = [item.place.step for item in finding.evidence if item.place.step is not None]
    lasted = number(within(after.measurements, "steps"))
    if steps and lasted is not None and lasted <= min(steps):
        yield f"the later run ended after {lasted:.0f} steps, before step {min(steps)}, where it was seen"


def _blind(detector: str, case: Case) -> Iterator[str]:
    """Why the silence of DETECTOR in CASE says nothing."""
    for outcome in case.outcomes:
        if isinstance(outcome, Inconclusive) and outcome.detector == detector:
            yield f"{detector} could not tell: {outcome.why}"
    if not any(outcome.detector == detector for outcome in case.outcomes):
        yield f"{detector} did not look"


def _new(finding: Finding, before: Case) -> Compared:
    why = next((told for item in finding.evidence for told in _blind(item.detector, before)), "")
    later = next((item for item in finding.evidence if item.value is not None), None)
    said = f"it may have been there before: {why}" if why else ""
    return Compared(Fate.NEW, None, finding, (None, later), said)
