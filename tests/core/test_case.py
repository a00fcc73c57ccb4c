from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from torchtriage.core.case import Case
from torchtriage.core.errors import TriageError
from torchtriage.core.evidence import Edit, Evidence, Inconclusive, Observed, Verdict
from torchtriage.core.fault import Fault
from torchtriage.core.finding import Finding
from torchtriage.core.plan import Plan, Question, Referral, Stage, Step
from torchtriage.core.query import Claim, ClaimKind, Decoded, Mention, Pressure, PressureKind, Query
from torchtriage.core.some import some


@pytest.fixture
def case(fault: Fault, seen: Callable[..., Evidence], plan: Plan) -> Case:
    text = "NaN, hurry, use AMP"
    query = Query(
        text,
        (Mention(0, 3, "NaN", symptom="nan-loss", specialist="debugging-techniques"),),
        (Claim(12, 19, "use AMP", kind=ClaimKind.PROPOSED_CURE, answer="Measure first."),),
        (Pressure(5, 10, "hurry", kind=PressureKind.TIME, answer="It takes seconds."),),
        (Decoded(0, 3, "NaN", signature="nan", fields={"shape": [4, 5], "device": "cpu"}, faults=()),),
    )
    edit = Edit("unscale-first", "t.py", 3, 3, "scaler.unscale_(optimizer)\n")
    clip = seen(path="t.py", line=3, value=float("nan"), edits=(edit,))
    share = seen("run/compute", "60 % computing", value=0.6, unit="share", spread=(0.5, 0.7))
    return Case(
        query=query,
        route=plan,
        outcomes=(Observed(clip.detector, (clip,)), Observed("run/compute", (share,)), Inconclusive("run/x", "a", "b")),
        findings=(Finding(fault, (clip,)),),
        verdicts=(Verdict("compute-bound", "Compute", (share,)),),
        measurements={"loss": [1.0, float("inf")], "shares": {"data": 0.25}},
    )


def test_a_case_survives_the_journey_through_json(case: Case) -> None:
    back = Case.decode(case.encode())
    assert back.encode() == case.encode()
    assert back.findings[0].fault == case.findings[0].fault
    assert back.findings[0].evidence[0].edits == case.findings[0].evidence[0].edits
    assert (back.query, back.route, back.verdicts) == (case.query, case.route, case.verdicts)


@pytest.mark.parametrize("route", [Question("What?", ("speed",)), Referral("theory", "not ours"), None])
def test_every_kind_of_route_survives_the_journey(route: Any) -> None:
    assert Case.decode(Case(route=route).encode()).route == route


def test_numbers_that_are_not_finite_are_written_as_words(case: Case) -> None:
    wire = msgspec.json.decode(case.encode())
    assert wire["findings"][0]["evidence"][0]["value"] == "nan"
    assert wire["measurements"]["loss"] == [1.0, "inf"]
    value = Case.decode(case.encode()).findings[0].evidence[0].value
    assert value is not None
    assert value != value  # noqa: PLR0124 - that is what NaN is


def test_a_finding_is_printed_in_the_flat_shape_of_the_interface(case: Case) -> None:
    finding = case.as_dict()["findings"][0]
    assert list(finding)[:10] == [
        "kind", "fault", "specialist", "class", "severity", "confidence", "persona", "fingerprint", "title", "evidence",
    ]  # fmt: skip
    assert finding["remedies"][0]["edits"] == [
        {"path": "t.py", "start": 3, "end": 3, "text": "scaler.unscale_(optimizer)\n"}
    ]


def test_every_object_says_its_kind(case: Case) -> None:
    wire = case.as_dict()
    kinds = [wire["kind"], wire["query"]["kind"], wire["route"]["kind"], wire["route"]["steps"][0]["kind"]]
    kinds += [item["kind"] for item in wire["outcomes"]] + [wire["verdicts"][0]["kind"]]
    assert kinds == [
        "case", "query", "plan", "step", "observed", "observed", "inconclusive", "verdict-given",
    ]  # fmt: skip


def test_what_was_shown_opens_the_steps_that_waited_for_it(case: Case) -> None:
    assert case.shown == {"clip-before-unscale", "compute-bound"}
    assert [step.specialist for step in case.open_steps] == [
        "performance-profiling", "mixed-precision-and-optimization",
    ]  # fmt: skip
    assert Case(route=Referral("theory", "not ours")).open_steps == ()


def test_observed_and_inconclusive_are_told_apart(case: Case) -> None:
    assert [len(case.observed), len(case.inconclusive)] == [2, 1]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a case"),
        (b"[]", "not a case"),
        (b'{"kind": "case", "schema": 99}', "schema 99"),
        (b'{"kind": "trace", "schema": 1}', "kind 'trace'"),
        (b'{"kind": "case", "schema": 1}', "missing required field"),
    ],
)
def test_what_is_no_case_is_refused_with_a_way_out(data: bytes, why: str) -> None:
    with pytest.raises(TriageError, match=why) as error:
        Case.decode(data, "case.json")
    assert (error.value.code, error.value.where) == (3, "case.json")


def test_a_finding_whose_evidence_was_taken_away_is_refused(case: Case) -> None:
    wire = case.as_dict()
    wire["findings"][0]["evidence"] = []
    with pytest.raises(TriageError, match="no evidence for clip-before-unscale"):
        Case.decode(msgspec.json.encode(wire))


def test_a_case_is_saved_whole_and_loaded_again(case: Case, tmp_path: Path) -> None:
    case.save(tmp_path / "case.json")
    assert Case.load(tmp_path / "case.json").encode() == case.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["case.json"]


def test_a_missing_case_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(TriageError, match="cannot be read") as error:
        Case.load(tmp_path / "nowhere.json")
    assert error.value.code == 3


def test_a_full_disk_leaves_the_old_case_and_no_debris(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "case.json"
    Case().save(target)
    before = target.read_bytes()

    def full(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(TriageError, match="No space left"):
        case.save(target)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["case.json"]


def test_at_least_one_is_needed() -> None:
    assert some(iter("ab"), "letters") == ("a", "b")
    with pytest.raises(ValueError, match="no letters"):
        some((), "letters")


def test_an_error_reads_as_where_what_and_what_to_do() -> None:
    assert str(TriageError("no such file", "train.py", "Name one.")) == "train.py: no such file. Name one."


def test_the_open_steps_of_a_case_leave_out_the_run_that_it_holds() -> None:
    examine = ("torchtriage run --symptom loss-exploding -- train.py", "torchtriage check train.py")
    plan = Plan((Step("debugging-techniques", Stage.DIAGNOSE, "x", examine=examine),))
    case = Case(route=plan, outcomes=(Observed("run/non-finite-origin"),), measurements={"setup": {"world_size": 1}})
    assert case.examinations == {"run"}
    assert [step.examine for step in case.open_steps] == [examine[1:]]
    assert [step.examine for step in Case(route=plan).open_steps] == [examine]
