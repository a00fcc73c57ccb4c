from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Place
from torchtriage.core.fault import Fault
from torchtriage.core.finding import Finding
from torchtriage.report.console import render
from torchtriage.report.outline import SHOWN, outline
from torchtriage.report.paper import Paper

HEADINGS = re.compile(r"^(Verdict|Why|Next|Not seen)$", re.M)


def test_verdict_why_next_and_what_was_not_seen_come_in_this_order(ill_run: Case) -> None:
    assert HEADINGS.findall(render(ill_run)) == ["Verdict", "Why", "Next", "Not seen"]


def test_a_heading_with_nothing_below_it_is_left_out(cases: dict[str, Case]) -> None:
    assert HEADINGS.findall(render(cases["nothing-found"])) == ["Verdict"]


@pytest.mark.parametrize("width", [40, 80, 110])
def test_no_line_is_wider_than_the_paper(width: int, case: Case) -> None:
    assert max(map(len, render(case, Paper(width)).splitlines())) <= width


def test_a_command_stands_on_a_line_of_its_own(ill_run: Case) -> None:
    assert "$ torchtriage check train.py\n" in render(ill_run)


def test_colours_change_no_word(case: Case) -> None:
    plain = re.sub(r"\x1b\[[\d;]*m", "", render(case, Paper(80, color=True)))
    assert [line.rstrip() for line in plain.splitlines()] == render(case).splitlines()


@pytest.mark.parametrize(
    ("name", "tone", "said"),
    [
        ("ill-run", "error", "2 more findings below"),
        (
            "healthy-run",
            "good",
            "No known fault in 60 steps (1 check). The step spends its time computing (compute-bound). 1 check could not tell",
        ),
        ("nothing-found", "good", "No known fault in what was read (1 check)."),
        ("all-blind", "unknown", "Nothing usable was found: "),
        ("planned", "unknown", "The plan says where to look first."),
        ("question", "unknown", "One question first: What do you see?"),
        ("referral", "unknown", "It belongs to training-optimization: Tuning is not a fault."),
    ],
)
def test_the_verdict_is_the_worst_finding_else_what_was_and_was_not_seen(
    name: str, tone: str, said: str, cases: dict[str, Case]
) -> None:
    story = outline(cases[name])
    assert story.tone == tone
    assert said in story.verdict


def test_a_job_that_broke_off_is_not_called_good(cases: dict[str, Case]) -> None:
    end = Inconclusive("run/end", "rank 0 ended at step 8 with RuntimeError at train.py:6", "Ask about its message.")
    healthy = cases["healthy-run"]
    story = outline(replace(healthy, outcomes=(*healthy.outcomes, end)))
    assert story.tone == "unknown"
    assert story.verdict.startswith("The job broke off: rank 0 ended at step 8 with RuntimeError at train.py:6. ")


def test_a_verdict_that_is_also_a_fault_is_told_once(ill_run: Case) -> None:
    assert [item.slug for item in outline(ill_run).given] == []
    assert [item.slug for item in outline(replace(ill_run, findings=())).given] == ["example-wait"]


def test_findings_of_one_fault_share_its_remedies(ill_run: Case) -> None:
    assert render(ill_run).count("Call scaler.unscale_(optimizer) before clipping") == 1


def test_a_fault_in_many_files_shows_some_and_counts_the_rest(clip: Fault) -> None:
    names = [f"{letter}.py" for letter in "abcdefghijk"]
    evidence = [Evidence("source/example-clip", Place(name, line), "a fact") for name in names for line in (3, 7)]
    case = Case(
        outcomes=(Observed("source/example-clip"),), findings=tuple(Finding(clip, (item,)) for item in evidence)
    )
    written = render(case)
    assert f"{names[SHOWN - 1]}:3, 7\n" in written
    assert names[SHOWN] not in written
    assert "and 6 more places, in the case" in written
    assert written.count("a fact") == 1
    assert "10 more findings below" in " ".join(written.split())


def test_only_the_first_remedy_is_told_in_full_and_the_page_has_the_rest(ill_run: Case) -> None:
    written = " ".join(render(ill_run).split())
    first, second = ill_run.findings[0].remedies
    assert all(text in written for text in (first.title, first.when, first.verify, second.title, second.when))
    assert second.cost not in written
    assert second.verify not in written
    assert "torchtriage explain NAME: the cost of every remedy, and how to verify it" in written


def test_a_remedy_that_costs_nothing_says_nothing_of_it(ill_run: Case) -> None:
    assert ill_run.findings[0].remedies[0].cost == "None."
    assert "None." not in render(ill_run)


def test_detectors_that_lacked_the_same_are_named_together(ill_run: Case) -> None:
    first = ill_run.inconclusive[0]
    case = Case(outcomes=(first, replace(first, detector="run/another")))
    (blind,) = outline(case).blind
    assert blind.detectors == "run/kernel-times, run/another"


@pytest.mark.parametrize(
    ("places", "said"),
    [
        (["src/a.py"], "src/a.py: it was too long."),
        (["a.py", "b.py"], "2 files: it was too long. a.py, b.py."),
        (["/job/x/a.py", "/job/x/y/b.py:2"], "2 files: it was too long. In /job/x: a.py, y/b.py:2."),
        (["/job/a.py", "b.py"], "2 files: it was too long. /job/a.py, b.py."),
        (
            [f"job/{name}.ipynb" for name in "abcdef"],
            "6 files: it was too long. In job: a.ipynb, b.ipynb, c.ipynb, d.ipynb and 2 more.",
        ),
    ],
)
def test_what_was_not_seen_of_several_files_is_said_once(places: list[str], said: str) -> None:
    items = (Inconclusive("source/execution", f"{place}: it was too long", "Run it.") for place in places)
    (blind,) = outline(Case(outcomes=tuple(items))).blind
    assert (blind.detectors, blind.why, blind.unblock) == ("source/execution", said, "Run it.")


@pytest.mark.parametrize(
    "measurements",
    [
        {"shares": "all"},
        {"shares": {"data": "half", "forward": 7, "backward": "nan"}},
        {"step_time": [1, 2, 3]},
        {"step_time": {"median": True}},
        {"overhead": {"share": None}, "memory": {"rss": [1]}},
        {"steps": "nan"},
    ],
)
def test_measurements_that_do_not_fit_are_left_out(measurements: dict[str, object]) -> None:
    assert render(Case(measurements=measurements)) == render(Case())


@pytest.mark.parametrize(
    ("measurements", "words"),
    [
        ({"overhead": 0.008}, "At least 0.8 % of the run went into the probes themselves."),
        (
            {"overhead": 0.69},
            "At least 69.0 % of the run went into the probes themselves, for the first steps are watched closely",
        ),
        (
            {"overhead": 0.2, "overhead_later": 0.01},
            "themselves; after the first steps, which are watched closely, 1.0 %.",
        ),
    ],
)
def test_what_the_probes_took_tells_the_first_steps_from_the_later(measurements: dict[str, object], words: str) -> None:
    assert words in " ".join(render(Case(measurements=measurements)).split())
