from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from plotly.offline import get_plotlyjs

from torchtriage.core.case import Case
from torchtriage.report.html import render
from torchtriage.report.html.plots import POINTS, plots
from torchtriage.report.html.seen import seen
from torchtriage.report.html.setup import setup
from torchtriage.report.outline import Sight


def drawn(page: str) -> list[dict[str, Any]]:
    data = page.split('<script type="application/json" id="plots">')[1].split("</script>")[0]
    found: list[dict[str, Any]] = msgspec.json.decode(data)
    return found


def test_the_same_case_gives_the_same_bytes(case: Case) -> None:
    assert render(case) == render(Case.decode(case.encode()))


def test_nothing_is_loaded_from_anywhere(case: Case) -> None:
    page = render(case).replace(get_plotlyjs(), "")
    assert not re.search(r"(?:src|href|action|srcset)\s*=\s*[\"'](?!#)|@import|url\(|<link|<base|<iframe", page)


def test_the_policy_allows_these_scripts_and_this_style_only(case: Case) -> None:
    page = render(case)
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[0].replace("&#39;", "'")
    scripts = [text for kind, text in re.findall(r"<script([^>]*)>(.*?)</script>", page, re.S) if not kind]
    styles = re.findall(r"<style[^>]*>(.*?)</style>", page, re.S)
    allowed = {f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (*scripts, *styles)}
    assert set(re.findall(r"'sha256-[^']+'", policy)) == allowed
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@pytest.mark.parametrize("name", ["healthy-run", "checked", "question", "referral", "planned", "all-blind"])
def test_a_case_without_a_series_of_figures_brings_no_plots_and_no_engine(name: str, cases: dict[str, Case]) -> None:
    page = render(cases[name])
    assert "<script" not in page
    assert len(page) < 40_000


def test_time_loss_and_memory_are_drawn_with_the_steps_to_look_at(ill_run: Case) -> None:
    found = {plot["id"]: plot for plot in drawn(render(ill_run))}
    assert list(found) == ["time", "loss", "memory"]
    assert list(found["time"]["columns"]) == ["data", "transfer", "forward", "backward", "optimizer", "other"]
    assert [(mark["step"], mark["label"]) for mark in found["loss"]["marks"]] == [
        (12, "example-clip"),
        (41, "loss is not finite"),
    ]


def test_a_plot_marks_the_step_of_each_finding_as_loudly_as_the_finding_is(ill_run: Case) -> None:
    marks = [mark for plot in drawn(render(ill_run)) for mark in plot["marks"]]
    assert {(mark["fault"], mark["tone"]) for mark in marks} == {("example-clip", "error"), ("", "error")}


@pytest.mark.parametrize(
    ("step", "unit", "home"),
    [
        (3, "", "loss"),
        (3, "KiB per step", "memory"),
        (None, "bytes", "memory"),
        (None, "of the step", "time"),
        (None, "s", "time"),
        (3, "loss scale", "loss"),  # no scale was drawn
        (3, "graphs", "loss"),
        (None, "graphs", None),
        (None, "", None),
        (60, "", None),  # after the last step drawn
    ],
)
def test_evidence_is_seen_where_its_unit_is_drawn_else_at_its_step(
    step: int | None, unit: str, home: str | None, ill_run: Case
) -> None:
    plot = seen(Sight("here", "a fact", "", "", step, unit), plots(ill_run))
    assert (plot.id if plot else None) == home


def test_findings_and_plots_are_linked_both_ways(ill_run: Case) -> None:
    page = render(ill_run)
    assert '<a href="#seen-loss">see loss</a>' in page
    assert '<a href="#seen-time">see where the time of each step goes</a>' in page
    assert 'step 12: <a class="error" href="#finding-example-clip">example-clip</a>' in page
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(re.findall(r' id="([^"]+)"', page))


@pytest.mark.parametrize(
    ("highest", "unit", "figure"), [(2**30, "GiB", 1.0), (2**30 - 2**20, "MiB", 1023.0), (0.5 * 2**20, "MiB", 0.5)]
)
def test_memory_is_drawn_from_zero_in_a_unit_that_fits(highest: float, unit: str, figure: float) -> None:
    (plot,) = plots(Case(measurements={"timeline": {"step": [0, 1], "rss": [1.0, highest]}}))
    assert (plot.unit, plot.zero) == (unit, True)
    assert plot.columns["resident on the host"][1] == pytest.approx(figure)


@pytest.mark.parametrize(
    ("figures", "zero"), [([4096.0, 4096.0], True), ([1.0, 1.005], True), ([1.0, 2.0], False), ([-1.0, -1.0], False)]
)
def test_an_axis_makes_no_waves_of_figures_that_hardly_change(figures: list[float], zero: bool) -> None:
    (plot,) = plots(Case(measurements={"scale": [list(pair) for pair in enumerate(figures)]}))
    assert plot.zero is zero


@pytest.mark.parametrize(("steps", "note"), [(2, ""), (5, "2 of 5 steps are drawn."), (None, ""), ("text", "")])
def test_a_timeline_says_how_many_of_the_steps_it_draws(steps: Any, note: str) -> None:
    (plot,) = plots(Case(measurements={"steps": steps, "timeline": {"step": [3, 4], "data": [0.1, 0.2]}}))
    assert plot.note == note


def test_a_long_series_is_thinned_and_says_so() -> None:
    case = Case(measurements={"loss": [[step, 1.0] for step in range(2 * POINTS + 1)]})
    (plot,) = plots(case)
    assert len(plot.steps) == len(plot.columns["loss"]) <= POINTS
    assert "One step in 3 is drawn" in plot.note


@pytest.mark.parametrize(
    "measurements",
    [
        {"loss": "text"},
        {"loss": [[0, 1.0]]},
        {"loss": [[0, "nan"], [1, "inf"]]},
        {"loss": [["zero", 1.0], [None], 3]},
        {"timeline": [1, 2]},
        {"timeline": {"step": [0, None], "data": [1, 2]}},
        {"timeline": {"step": [0, 1], "data": [1]}},
        {"timeline": {"data": [1, 2]}},
    ],
)
def test_figures_that_do_not_fit_are_not_drawn(measurements: dict[str, Any]) -> None:
    assert plots(Case(measurements=measurements)) == ()


@pytest.mark.parametrize(
    ("figures", "log"), [([1.0, 2.0], False), ([1.0, 1e6], True), ([0.0, 1e6], False), ([-1.0, 1e6], False)]
)
def test_figures_over_orders_of_magnitude_get_a_logarithmic_axis(figures: list[float], log: bool) -> None:
    (plot,) = plots(Case(measurements={"grad_norm": [list(pair) for pair in enumerate(figures)]}))
    assert plot.log is log


def test_every_finding_and_everything_not_seen_stands_on_the_page(ill_run: Case) -> None:
    page = render(ill_run)
    for finding in ill_run.findings:
        assert finding.fault.slug in page
        assert all(remedy.title in page and remedy.verify in page for remedy in finding.remedies)
    for item in ill_run.inconclusive:
        assert item.why in page
        assert item.unblock in page


def test_what_the_user_said_is_quoted(ill_run: Case) -> None:
    assert ill_run.query is not None
    assert f"<blockquote>{ill_run.query.text}</blockquote>" in render(ill_run)


def test_the_page_does_not_change_with_the_order_in_which_measurements_were_taken(ill_run: Case) -> None:
    turned = dict(reversed(ill_run.measurements.items()))
    assert drawn(render(replace(ill_run, measurements=turned))) == drawn(render(ill_run))


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        (None, ()),
        ("text", ()),
        ({"torch": "2.13.0", "empty": None, "none": [], "also": {}}, (("torch", "2.13.0"),)),
        ({"launch": ["python", "train.py"]}, (("launch", "python train.py"),)),
        ({"batch": [{"shape": [16, 32]}, {"shape": [16]}]}, (("batch 0", "shape 16, 32"), ("batch 1", "shape 16"))),
        ({"loader": [{"workers": 0, "pinned": False}]}, (("loader", "workers 0; pinned no"),)),
        ({"parameters": {"float32": 1200000}}, (("parameters", "float32 1,200,000"),)),
    ],
)
def test_the_setup_is_a_table_of_one_row_for_each_entry(table: Any, rows: tuple[tuple[str, str], ...]) -> None:
    assert setup({"setup": table}) == rows


def test_the_ranks_of_a_job_stand_side_by_side_when_there_are_several() -> None:
    each = [
        {"rank": rank, "steps": 40, "step_time": {"median": 0.1 * (rank + 1)}, "shares": {"data": 0.5}}
        for rank in range(2)
    ]
    several = render(Case(measurements={"ranks": {"each": each}}))
    assert "<td>100 ms</td>" in several
    assert "<td>200 ms</td>" in several
    assert 'class="ranks"' not in render(Case(measurements={"ranks": {"each": each[:1]}}))
    assert 'class="ranks"' not in render(Case(measurements={"ranks": {"each": [{"rank": "a"}, 3]}}))
