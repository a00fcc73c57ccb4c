"""Evidence in; findings, verdicts and what was too close to call out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from torchtriage.catalog.load import Catalog
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Outcome, Verdict
from torchtriage.core.fault import Sign
from torchtriage.core.finding import Finding
from torchtriage.core.some import some


def findings(outcomes: Iterable[Outcome], catalog: Catalog) -> tuple[Finding, ...]:
    """Every fault whose sign some evidence satisfies at the near end of its interval, loudest first.

    Each place in the source is a finding of its own; a run or an artefact shows a fault once, with all
    the evidence for it.
    """
    evidence = _evidence(outcomes)
    made = [
        Finding(fault, some(group, f"evidence for {fault.slug}"))
        for fault in catalog.faults.values()
        for group in _grouped(_shown(fault.signs, evidence))
    ]
    return tuple(sorted(made, key=_order))


def verdicts(outcomes: Iterable[Outcome], catalog: Catalog) -> tuple[Verdict, ...]:
    """Every verdict whose sign some evidence satisfies."""
    evidence = _evidence(outcomes)
    return tuple(
        Verdict(kind.slug, kind.title, some(shown, f"evidence for {kind.slug}"))
        for kind in catalog.verdicts.values()
        if (shown := _shown(kind.signs, evidence))
    )


def unsure(outcomes: Iterable[Outcome], catalog: Catalog) -> tuple[Inconclusive, ...]:
    """What was measured but lies too close to a sign's bound to be called."""
    signs = {sign: slug for slug, fault in catalog.faults.items() for sign in fault.signs}
    return tuple(
        Inconclusive(
            item.detector,
            f"too close to call for {slug}: {item.fact}, between {item.spread[0]:.3g} and {item.spread[1]:.3g} "
            f"where the sign is more than {sign.above:.3g}",
            f"Measure over {_times_as_many(item.value, item.spread, sign.above)} as many steps, or more.",
        )
        for item in _evidence(outcomes)
        for sign, slug in signs.items()
        if sign.straddled_by(item) and item.spread is not None
    )


def _times_as_many(value: float | None, spread: tuple[float, float], bound: float | None) -> str:
    """How many times as many steps make such an interval leave out BOUND: its width falls as 1 over their root."""
    gap = abs((value or 0.0) - (bound or 0.0))
    half = (spread[1] - spread[0]) / 2
    times = min((half / gap) ** 2 if gap else 20.0, 20.0)
    return f"{max(ceil(times), 2)} times"


def _evidence(outcomes: Iterable[Outcome]) -> list[Evidence]:
    return [item for outcome in outcomes if isinstance(outcome, Observed) for item in outcome.evidence]


def _shown(signs: Sequence[Sign], evidence: Sequence[Evidence]) -> list[Evidence]:
    return [item for item in evidence if any(sign.shows_in(item) for sign in signs)]


def _grouped(evidence: Sequence[Evidence]) -> Iterator[list[Evidence]]:
    groups: dict[object, list[Evidence]] = defaultdict(list)
    for item in evidence:
        at_source = item.detector.startswith("source/")
        groups[(item.place.path, item.place.cell, item.place.line) if at_source else None].append(item)
    yield from groups.values()


_LOUDNESS = {"error": 0, "warning": 1, "info": 2}


def _order(finding: Finding) -> tuple[int, str, int, str]:
    place = finding.evidence[0].place
    return (_LOUDNESS[finding.fault.severity.value], place.path or "", place.line or 0, finding.fault.slug)
