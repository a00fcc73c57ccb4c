from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from torchtriage.catalog.load import Catalog
from torchtriage.catalog.room import Room, VerdictKind
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Place
from torchtriage.core.fault import Confidence, Fault, FaultClass, Persona, Remedy, Sign
from torchtriage.diagnose import weigh


@pytest.fixture
def catalog(fault: Fault) -> Catalog:
    waste = replace(fault, slug="input-bound", kind=FaultClass.WASTE, signs=(Sign("run/data-wait", 0.3),))
    advice = replace(fault, slug="bucket-size", kind=FaultClass.ADVICE, signs=(Sign("run/buckets"),))
    bound = VerdictKind("input-bound", "room", "The step waits for data", (Sign("run/data-wait", 0.3),))
    return Catalog((Room("room", faults=(advice, waste, fault), verdicts=(bound,)),))


Seen = Callable[..., Evidence]


def test_each_place_in_the_source_is_a_finding_of_its_own(catalog: Catalog, seen: Seen) -> None:
    clips = Observed("source/clip-before-unscale", tuple(seen(path="t.py", line=line) for line in (9, 3)))
    found = weigh.findings([clips], catalog)
    assert [(f.fault.slug, f.evidence[0].place.line) for f in found] == [
        ("clip-before-unscale", 3), ("clip-before-unscale", 9),
    ]  # fmt: skip


def test_a_run_shows_a_fault_once_with_all_the_evidence(catalog: Catalog, seen: Seen) -> None:
    waits = [Observed("run/data-wait", (seen("run/data-wait", value=0.6, rank=rank),)) for rank in range(3)]
    (found,) = weigh.findings(waits, catalog)
    assert [item.place.rank for item in found.evidence] == [0, 1, 2]


def test_the_loudest_comes_first(catalog: Catalog, seen: Seen) -> None:
    outcomes = [
        Observed("run/buckets", (seen("run/buckets"),)),
        Observed("run/data-wait", (seen("run/data-wait", value=0.9),)),
        Observed("run/clips", (seen("run/clips", value=0.9),)),
    ]
    assert [f.fault.severity.value for f in weigh.findings(outcomes, catalog)] == ["error", "warning", "info"]


def test_a_value_below_its_bound_is_no_finding_and_no_verdict(catalog: Catalog, seen: Seen) -> None:
    calm = [Observed("run/data-wait", (seen("run/data-wait", value=0.2),)), Inconclusive("run/clips", "a", "b")]
    assert weigh.findings(calm, catalog) == weigh.verdicts(calm, catalog) == ()


def test_a_verdict_is_given_by_the_same_evidence_as_a_fault(catalog: Catalog, seen: Seen) -> None:
    (verdict,) = weigh.verdicts([Observed("run/data-wait", (seen("run/data-wait", value=0.9),))], catalog)
    assert (verdict.verdict, verdict.evidence[0].value) == ("input-bound", 0.9)


def test_an_interval_around_the_bound_is_too_close_to_call(catalog: Catalog, seen: Seen) -> None:
    close = [Observed("run/data-wait", (seen("run/data-wait", "32 % waiting", value=0.32, spread=(0.2, 0.44)),))]
    assert weigh.findings(close, catalog) == ()
    (unsure,) = weigh.unsure(close, catalog)
    assert unsure.why == (
        "too close to call for input-bound: 32 % waiting, between 0.2 and 0.44 where the sign is more than 0.3"
    )


@given(order=st.permutations(range(6)))
def test_the_order_in_which_detectors_report_never_matters(order: list[int]) -> None:
    remedy: dict[str, Any] = {"id": "r", "title": "t", "when": "w", "cost": "c", "order": 1, "verify": "v"}
    faults = tuple(
        Fault(slug, "room", "t", kind, Confidence.HIGH, Persona.DEFAULT, (Sign(f"source/{slug}"),), (Remedy(**remedy),))
        for slug, kind in (("a", FaultClass.WASTE), ("b", FaultClass.WRONG))
    )
    catalog = Catalog((Room("room", faults=faults),))
    outcomes = [
        Observed(f"source/{slug}", (Evidence(f"source/{slug}", Place(path="t.py", line=line), "seen"),))
        for slug in "ab"
        for line in (1, 2, 3)
    ]
    assert weigh.findings([outcomes[i] for i in order], catalog) == weigh.findings(outcomes, catalog)


@pytest.mark.parametrize(
    ("value", "spread", "times"),
    [(0.32, (0.25, 0.39), "13 times"), (0.36, (0.27, 0.45), "3 times"), (0.30, (0.2, 0.4), "20 times")],
    ids=["near the bound", "an interval that hardly touches it", "on the bound"],
)
def test_what_is_too_close_to_call_says_how_much_longer_to_measure(
    catalog: Catalog, seen: Seen, value: float, spread: tuple[float, float], times: str
) -> None:
    (unsure,) = weigh.unsure([Observed("run/data-wait", (seen("run/data-wait", value=value, spread=spread),))], catalog)
    assert unsure.unblock == f"Measure over {times} as many steps, or more."
