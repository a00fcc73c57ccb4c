"""How a comparison is told, from cases made by hand."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.diagnose.compare import Fate, compare
from torchtriage.report.compare import as_json, markdown, render, tone, verdict


def timed(median: float, low: float | None = None, high: float | None = None, cpus: int = 2, **more: float) -> Case:
    ends = None if low is None else [low, high]
    measured = {"step_time": {"median": median, "interval": ends, **more}, "setup": {"cpus": cpus}, "steps": 50}
    return Case(measurements=measured)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (timed(0.2, 0.19, 0.21), timed(0.14, 0.139, 0.141), "A step is 1.43 times as fast (1.35 to 1.51)."),
        (timed(0.14, 0.139, 0.141), timed(0.2, 0.19, 0.21), "A step is 1.43 times as slow (1.35 to 1.51)."),
        (timed(0.2), timed(0.1), "A step is 2.00 times as fast."),
        (timed(0.1), timed(0.2), "A step is 2.00 times as slow."),
        (timed(0.1), timed(0.1), "A step takes as long as before, as far as can be told."),
        (
            timed(0.2, 0.1, 0.3),
            timed(0.2, 0.1, 0.3),
            "A step takes as long as before, as far as can be told (0.33 to 3.00 times as fast).",
        ),
        (
            timed(0.2, p10=0.1, p90=0.3),
            timed(0.1, p10=0.09, p90=0.2),
            "A step is 2.00 times as fast, but the steps of one run differ by as much: measure both again.",
        ),
        (
            timed(0.1, p10=0.09, p90=0.2),
            timed(0.2, p10=0.1, p90=0.3),
            "A step is 2.00 times as slow, but the steps of one run differ by as much: measure both again.",
        ),
        (timed(0.2, cpus=2), timed(0.1, cpus=8), "The figures of the two are not compared: see cpus."),
        (Case(), timed(0.1), "The figures of the two are not compared: see measurements."),
    ],
)
def test_how_much_faster_a_step_is_stands_in_the_verdict(before: Case, after: Case, said: str, ill_run: Case) -> None:
    looked = replace(after, outcomes=ill_run.outcomes)
    assert verdict(compare(before, looked)) == f"No known fault, before or after. {said}"


def test_where_nobody_looked_nothing_is_claimed(ill_run: Case) -> None:
    told = compare(ill_run, Case())
    assert verdict(told) == "Nothing was examined after the change: nothing can be said."
    assert {each.fate for each in told.outcomes} == {Fate.UNSEEN}


def test_every_list_of_the_interface_is_there_even_when_it_is_empty() -> None:
    said = msgspec.json.decode(as_json(compare(Case(), Case())))
    assert {
        "schema": 1,
        **{name: [] for name in ("gone", "smaller", "same", "new", "larger", "unseen")},
    }.items() <= said.items()
    assert said["step_time"] is None
    assert said["comparable"] is False


def test_json_holds_the_figures_of_both_sides(ill_run: Case, mended: Case) -> None:
    said = msgspec.json.decode(as_json(compare(ill_run, mended)))
    (wait,) = said["smaller"]
    assert (wait["fault"], wait["before"]["value"], wait["after"]["value"]) == ("example-wait", 0.62, 0.4)
    assert wait["after"]["spread"] == [0.37, 0.43]
    assert wait["before"]["place"]["rank"] == 0
    assert [each["fault"] for each in said["gone"]] == ["example-clip"]
    assert said["gone"][0]["after"] is None
    assert said["unseen"][0]["why"] == "source/example-clip did not look"
    assert said["step_time"]["change"] == "smaller"
    assert said["shares"]["data"] == {"before": 0.62, "after": 0.4}
    assert said["memory"]["rss"]["after"] < said["memory"]["rss"]["before"]


def test_the_same_cases_give_the_same_bytes(ill_run: Case, mended: Case) -> None:
    again = [Case.decode(case.encode()) for case in (ill_run, mended)]
    for form in (as_json, render, markdown):
        assert form(compare(ill_run, mended)) == form(compare(*again))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("ill-run", "ill-run", "warning"),
        ("healthy-run", "ill-run", "error"),
        ("ill-run", "healthy-run", "unknown"),  # other detectors looked
        ("healthy-run", "healthy-run", "good"),
        ("ill-run", "planned", "unknown"),
    ],
)
def test_the_tone_is_that_of_the_worst_that_is_left(before: str, after: str, said: str, cases: dict[str, Case]) -> None:
    assert tone(compare(cases[before], cases[after])) == said


def test_a_run_compared_with_itself_has_changed_in_nothing(ill_run: Case) -> None:
    told = compare(ill_run, ill_run)
    assert {each.fate for each in told.outcomes} == {Fate.SAME}
    assert "takes as long as before" in render(told)
