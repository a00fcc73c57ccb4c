"""The labelled reports: read whole or refused, a fifth of them held back, and each label is one that exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from torchtriage.catalog.load import catalog
from torchtriage.catalog.scenarios import FIFTH, Report, reports, scenarios
from torchtriage.core.errors import TriageError

ROOM = """\
[[utterance]]
query = "it is slow"
route = ["performance-profiling"]

[[utterance]]
query = "help"
kind = "question"

[[scenario]]
query = "write it in JAX"
name = "jax"
kind = "referral"
refer_to = "other-framework"
must = ["refer"]
must_not = ["plan"]

[[report]]
text = "my run is slow since today"
route = ["performance-profiling"]
also = [["mixed-precision-and-optimization"], ["performance-profiling", "mixed-precision-and-optimization"]]
also_kinds = ["question"]
tags = ["english"]

[[report]]
text = "which paper explains Adam"
kind = "referral"
refer_to = "theory"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A source folder with one room's scenarios, and one table of the station that has no reports."""
    for name, text in {"specialists/room": ROOM, "routing": '[[utterance]]\nquery = "hm"\nkind = "question"\n'}.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "scenarios.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_the_reports_of_every_room_are_read_with_their_labels(folder: Path) -> None:
    slow, theory = reports(folder)
    assert (slow.kind, slow.route, slow.tags) == ("plan", ("performance-profiling",), ("english",))
    assert slow.also == (
        ("mixed-precision-and-optimization",),
        ("performance-profiling", "mixed-precision-and-optimization"),
    )
    assert slow.also_kinds == ("question",)
    assert (theory.kind, theory.route, theory.refer_to) == ("referral", (), "theory")


def test_the_exact_scenarios_are_read_as_reports(folder: Path) -> None:
    assert {(each.text, each.kind, each.route, each.refer_to) for each in scenarios(folder)} == {
        ("hm", "question", (), None),
        ("it is slow", "plan", ("performance-profiling",), None),
        ("help", "question", (), None),
        ("write it in JAX", "referral", (), "other-framework"),
    }


def test_an_installation_without_reports_says_so(tmp_path: Path) -> None:
    with pytest.raises(TriageError, match="no labelled reports") as error:
        reports(tmp_path)
    assert error.value.where == str(tmp_path)
    assert scenarios(tmp_path) == ()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('tags = ["english"]', 'tag = ["english"]', "tag"),
        ('text = "my run', "text = 3 # ", "Expected `str`"),
        ('kind = "referral"\nrefer_to = "theory"', 'kind = "guess"', "guess"),
        ('kind = "referral"\nrefer_to = "theory"', 'kind = "plan"', "a route belongs to a plan"),
        ('kind = "referral"\nrefer_to = "theory"', 'kind = "question"\nrefer_to = "theory"', "refer_to to a referral"),
        ("[[report]]", "[[report]", "broken table"),
    ],
    ids=["unknown column", "no text", "unknown kind", "plan without a route", "question with a field", "no toml"],
)
def test_a_broken_report_is_named_with_its_file(folder: Path, old: str, new: str, why: str) -> None:
    path = folder / "specialists/room/scenarios.toml"
    path.write_text(ROOM.replace(old, new), encoding="utf-8")
    with pytest.raises(TriageError, match=why) as error:
        reports(folder)
    assert error.value.where == str(path)


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "plan"},
        {"kind": "question", "route": ("a",)},
        {"kind": "referral", "route": ("a",), "refer_to": "theory"},
        {"kind": "question", "refer_to": "theory"},
        {"route": ("a",), "refer_to": "theory"},
    ],
)
def test_a_label_that_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a route belongs to a plan, refer_to to a referral"):
        Report("it is slow", **fields)


@given(st.text())
def test_whether_a_report_is_held_back_depends_on_its_text_alone(text: str) -> None:
    report = Report(text, "question")
    assert report.held == replace(report, kind="plan", route=("a",), tags=("x",)).held


# Those of this checkout.

ROOMS = set(catalog().specialists)


def test_about_a_fifth_is_held_back() -> None:
    given_ = reports()
    held = sum(report.held for report in given_)
    assert len(given_) > 1000
    assert 0.5 < held * FIFTH / len(given_) < 1.5


def test_every_label_names_specialists_that_exist() -> None:
    for report in (*reports(), *scenarios()):
        assert {*report.route, *(room for way in report.also for room in way)} <= ROOMS, report.text
        assert len(set(report.route)) == len(report.route), report.text


def test_every_referral_names_a_field() -> None:
    assert [report.text for report in reports() if report.kind == "referral" and not report.refer_to] == []


def test_every_specialist_and_every_kind_has_reports_that_teach_and_reports_that_test() -> None:
    for held in (True, False):
        chosen = [report for report in reports() if report.held is held]
        assert {report.route[0] for report in chosen if report.route} == ROOMS
        assert {report.kind for report in chosen} == {"plan", "question", "referral"}


def test_no_report_is_there_twice_with_two_labels() -> None:
    labels: dict[str, set[tuple[Any, ...]]] = {}
    for report in (*reports(), *scenarios()):
        labels.setdefault(report.text.strip(), set()).add((report.kind, report.route, report.refer_to))
    assert {text: found for text, found in labels.items() if len(found) > 1} == {}


def test_what_an_expert_would_also_accept_is_something_else_than_the_label() -> None:
    assert [report.text for report in reports() if report.route and report.route in report.also] == []
