"""What became of each finding, from cases made by hand."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Inconclusive, Observed
from torchtriage.core.fault import Fault, Sign
from torchtriage.core.finding import Finding
from torchtriage.diagnose.compare import Compared, Fate, compare

Found = Callable[..., Finding]
LOOKED = (Observed("run/waits"), Observed("source/clips"))
RUN = {"steps": 100, "step_time": {"median": 0.1}}


@pytest.fixture
def found(fault: Fault, seen: Callable[..., Evidence]) -> Found:
    """A finding from a few words; of a run unless something else is said."""

    def make(slug: str = "input-bound", detector: str = "run/waits", **fields: Any) -> Finding:
        one = replace(fault, slug=slug, signs=(Sign("run/waits"), Sign("source/clips"), Sign("run/steps")))
        return Finding(one, (seen(detector, **fields),))

    return make


def case(*findings: Finding, steps: int | None = None, outcomes: tuple[Any, ...] = LOOKED) -> Case:
    measurements = {} if steps is None else {**RUN, "steps": steps}
    return Case(outcomes=outcomes, findings=findings, measurements=measurements)


def fates(before: Case, after: Case) -> list[tuple[Fate, str]]:
    return [(each.fate, each.finding.fault.slug) for each in compare(before, after).outcomes]


SHARE = {"unit": "of the step"}


@pytest.mark.parametrize(
    ("before", "after", "fate"),
    [
        ({"value": 0.6, "spread": (0.5, 0.7)}, {"value": 0.4, "spread": (0.35, 0.45)}, Fate.SMALLER),
        ({"value": 0.4, "spread": (0.35, 0.45)}, {"value": 0.6, "spread": (0.5, 0.7)}, Fate.LARGER),
        ({"value": 0.6, "spread": (0.5, 0.7)}, {"value": 0.5, "spread": (0.45, 0.55)}, Fate.SAME),
        ({"value": 0.6, "spread": (0.5, 0.7)}, {"value": 0.4, "spread": (0.3, 0.5)}, Fate.SAME),  # they touch
        ({"value": 0.6, "spread": (0.59, 0.61)}, {"value": 0.55, "spread": (0.54, 0.56)}, Fate.SMALLER),
        ({"value": 100.0}, {"value": 80.0}, Fate.SMALLER),
        ({"value": 100.0}, {"value": 90.0}, Fate.SAME),  # within the margin
        ({"value": 90.0}, {"value": 101.0}, Fate.LARGER),
        ({"value": 100.0, "spread": (99.0, 101.0)}, {"value": 95.0}, Fate.SAME),  # one interval, within the margin
        ({"value": 100.0, "spread": (70.0, 130.0)}, {"value": 80.0}, Fate.SAME),  # within the interval
        ({"value": 0.0}, {"value": 0.0}, Fate.SAME),
        ({"value": nan}, {"value": 1.0}, Fate.SAME),
        ({"value": 1.0}, {"value": nan}, Fate.SAME),
        ({"value": inf}, {"value": inf}, Fate.SAME),
        ({"value": inf}, {"value": 1.0}, Fate.SMALLER),
        ({"value": 1.0}, {"value": inf}, Fate.LARGER),
        ({"value": None}, {"value": 1.0}, Fate.SAME),
        ({"value": 1.0}, {"value": None}, Fate.SAME),
        ({"value": 9.0, "unit": "MiB"}, {"value": 1.0, "unit": "GiB"}, Fate.SAME),  # not the same unit
        ({"value": 9.0}, {"value": 1.0, "detector": "run/steps"}, Fate.SAME),  # not the same detector
    ],
)
def test_a_finding_is_smaller_or_larger_only_where_the_intervals_do_not_meet(
    before: dict[str, Any], after: dict[str, Any], fate: Fate, found: Found
) -> None:
    one, two = found(**{**SHARE, **before}), found(**{**SHARE, **after})
    assert fates(case(one), case(two)) == [(fate, "input-bound")]


def test_of_several_figures_of_one_measure_the_strongest_count(found: Found, seen: Any) -> None:
    one, two = found(value=0.9, rank=0), found(value=0.3, rank=0)
    weak = seen("run/waits", value=0.1, rank=1)
    both = replace(one, evidence=(weak, *one.evidence))
    (told,) = compare(case(both), case(two)).outcomes
    assert [item.value for item in told.figures if item] == [0.9, 0.3]


def test_findings_meet_by_fingerprint_then_by_place_then_by_fault(found: Found) -> None:
    def line(path: str, module: str | None, anchor: str, number: int) -> Finding:
        return found(detector="source/clips", path=path, module=module, anchor=anchor, line=number)

    before = [line("a.py", "x", "clip(1)", 3), line("a.py", "y", "clip(2)", 4), line("b.py", None, "clip(3)", 5)]
    after = [line("c.py", None, "clip(9)", 1), line("a.py", "z", "clip(8)", 2), line("a.py", "x", "clip(1)", 30)]
    told = compare(case(*before), case(*after)).outcomes
    pairs = {
        each.before.evidence[0].place.line: each.after.evidence[0].place.line
        for each in told
        if each.before and each.after
    }
    assert pairs == {3: 30, 4: 2, 5: 1}
    assert {each.fate for each in told} == {Fate.SAME}


def test_each_finding_is_matched_once(found: Found) -> None:
    lines = [found(detector="source/clips", path="a.py", line=number) for number in range(4)]
    assert [fate for fate, _ in fates(case(*lines), case(*lines[:3]))] == [Fate.SAME] * 3 + [Fate.GONE]
    assert [fate for fate, _ in fates(case(*lines[:3]), case(*lines))] == [Fate.NEW] + [Fate.SAME] * 3


BLIND = Inconclusive("run/waits", "no loader was seen", "Use a loader.")


@pytest.mark.parametrize(
    ("after", "steps", "fate", "why"),
    [
        (LOOKED, 100, Fate.GONE, ""),
        (LOOKED, 51, Fate.GONE, ""),
        (LOOKED, 50, Fate.UNSEEN, "the later run ended after 50 steps, before step 50, where it was seen"),
        (LOOKED, None, Fate.GONE, ""),
        ((), None, Fate.UNSEEN, "run/waits did not look"),
        ((Observed("source/clips"),), 100, Fate.UNSEEN, "run/waits did not look"),
        ((BLIND,), 100, Fate.UNSEEN, "run/waits could not tell: no loader was seen"),
        ((Observed("run/waits"), BLIND), 100, Fate.UNSEEN, "run/waits could not tell: no loader was seen"),
    ],
)
def test_a_finding_is_gone_only_where_its_detector_looked_far_enough(
    after: tuple[Any, ...], steps: int | None, fate: Fate, why: str, found: Found
) -> None:
    (told,) = compare(case(found(step=50), steps=100), case(steps=steps, outcomes=after)).outcomes
    assert (told.fate, told.why) == (fate, why)


def test_what_is_gone_shows_what_was_measured_below_the_sign(found: Found, seen: Any) -> None:
    low = seen("run/waits", value=0.1, **SHARE)
    (told,) = compare(case(found(value=0.6, **SHARE)), case(outcomes=(Observed("run/waits", (low,)),))).outcomes
    assert told.fate is Fate.GONE
    assert [item.value for item in told.figures if item] == [0.6, 0.1]
    (alone,) = compare(case(found(value=0.6, **SHARE)), case()).outcomes
    assert alone.figures[1] is None


@pytest.mark.parametrize(
    ("outcomes", "why"),
    [
        (LOOKED, ""),
        ((), "it may have been there before: run/waits did not look"),
        ((BLIND,), "it may have been there before: run/waits could not tell: no loader was seen"),
    ],
)
def test_a_new_finding_says_when_nobody_had_looked_for_it(outcomes: tuple[Any, ...], why: str, found: Found) -> None:
    (told,) = compare(case(outcomes=outcomes), case(found(value=0.6))).outcomes
    assert (told.fate, told.why) == (Fate.NEW, why)


@pytest.mark.parametrize(
    ("spread", "setup", "steps", "fate"),
    [
        (None, {}, 100, Fate.SMALLER),
        (None, {}, 20, Fate.SAME),  # a count may add up over the steps
        ((0.1, 0.3), {}, 20, Fate.SMALLER),  # a rate does not
        ((0.1, 0.3), {"parameters": {"float32": 7}}, 100, Fate.SAME),
    ],
)
def test_figures_of_unlike_runs_are_not_held_against_one_another(
    spread: tuple[float, float] | None, setup: dict[str, Any], steps: int, fate: Fate, found: Found
) -> None:
    before = replace(
        case(found(value=0.6, spread=(0.5, 0.7))), measurements={**RUN, "setup": {"parameters": {"float32": 9}}}
    )
    after = replace(case(found(value=0.2, spread=spread)), measurements={**RUN, "setup": setup, "steps": steps})
    (told,) = compare(before, after).outcomes
    assert told.fate is fate
    assert bool(told.why) is (fate is Fate.SAME)


def test_what_remains_and_whether_anyone_looked(found: Found) -> None:
    one = found()
    told = compare(case(one), case())
    assert (told.of(Fate.GONE), told.of(Fate.NEW)) == (told.outcomes, ())
    assert (told.remaining, told.looked) == (False, True)
    assert compare(case(one), case(one, outcomes=())).looked
    assert not compare(case(one), Case()).looked
    assert compare(case(), case(one)).remaining


def test_an_outcome_without_a_finding_is_refused() -> None:
    with pytest.raises(ValueError, match="no finding"):
        _ = Compared(Fate.GONE, None, None).finding


def test_of_two_checkpoints_the_keys_are_kept_and_no_figures_of_a_run_are_missed() -> None:
    keys = {"said": "4 tensors have the same shape in both", "renamed": {"module.a": "a"}}
    told = compare(Case(outcomes=LOOKED), Case(outcomes=LOOKED, measurements={"keys": keys}))
    assert (told.keys, told.runs.doubts) == (keys, ())
    assert compare(case(), case()).keys == {}
