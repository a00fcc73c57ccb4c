"""One fault in one file is one finding, and what is true of several places is said once."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Observed, Place
from torchtriage.core.fault import Fault
from torchtriage.core.finding import Finding
from torchtriage.report import check
from torchtriage.report.formats import FORMATS, render
from torchtriage.report.outline import outline
from torchtriage.report.places import LINES

SAID = "the gradients of line {} are still scaled"


def at(line: int, fact: str = "a fact", path: str = "train.py", anchor: str | None = None, **rest: object) -> Evidence:
    place = msgspec.convert({"path": path, "line": line, "anchor": anchor, **rest}, Place)
    return Evidence("source/example-clip", place, fact)


def case(fault: Fault, *evidence: Evidence) -> Case:
    """A case of source, in which each piece of evidence is a finding, as weighing makes it."""
    found = tuple(Finding(fault, (item,)) for item in evidence)
    return Case(outcomes=(Observed("source/example-clip", evidence),), findings=found, measurements={"files": 2})


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        ([at(12), at(40), at(88)], [("train.py:12, 40, 88", "a fact")]),
        ([at(12, column=5)], [("train.py:12:5", "a fact")]),
        ([at(33, SAID.format(32)), at(48, SAID.format(47))], [("train.py:33, 48", f"line 33: {SAID.format(32)}")]),
        (
            [at(7, "torch.ones() is copied"), at(8, "torch.zeros() is copied")],
            [("train.py:7, 8", "line 7: torch.ones() is copied")],
        ),
        (
            [at(7, "losses grows", anchor="losses.append(x)"), at(8, "logits grows", anchor="logits.append(x)")],
            [("train.py:7, 8", "line 7: losses grows")],
        ),
        (
            [at(7, "losses grows", anchor="total += x"), at(8, "logits grows", anchor="total += x")],
            [("train.py:7", "losses grows"), ("train.py:8", "logits grows")],
        ),
        (
            [at(7, "it grows"), at(8, "it grows in every step")],
            [("train.py:7", "it grows"), ("train.py:8", "it grows in every step")],
        ),
        ([at(7, "not quoted"), at(7, "quoted", anchor="x = y")], [("train.py:7", "quoted")]),
        ([at(7, "first", anchor="x = y"), at(7, "second", anchor="x = y")], [("train.py:7", "first")]),
        ([at(3, cell=2), at(3, cell=4), at(9, cell=4)], [("train.py:3, cell 2", "a fact")]),
        (
            [at(line) for line in range(1, LINES + 4)],
            [(f"train.py:{', '.join(map(str, range(1, LINES + 1)))} and 3 more", "a fact")],
        ),
    ],
)
def test_places_of_one_sentence_stand_together(
    evidence: list[Evidence], told: list[tuple[str, str]], clip: Fault
) -> None:
    (trouble,) = outline(case(clip, *evidence)).troubles
    assert [(sight.place, sight.fact) for sight in trouble.sights] == told
    assert trouble.more == 0


def test_a_sentence_that_is_true_in_several_files_names_them_all(clip: Fault) -> None:
    found = [
        at(3, SAID.format(2), "a.py", "first"),
        at(9, SAID.format(8), "a.py"),
        at(5, SAID.format(4), "b.py", "other"),
    ]
    (sight,) = outline(case(clip, *found)).troubles[0].sights
    assert (sight.place, sight.excerpt, sight.fact) == ("a.py:3, 9", "first", f"a.py:3: {SAID.format(2)}")
    assert [(spot.place, spot.excerpt) for spot in sight.also] == [("b.py:5", "other")]


def test_what_a_run_has_measured_is_told_place_by_place(clip: Fault) -> None:
    first, second = (
        Evidence("run/example-clip", Place("train.py", line, rank=line), "a fact", float(line), "times")
        for line in (1, 2)
    )
    (trouble,) = outline(Case(findings=(Finding(clip, (first, second)),))).troubles
    assert [sight.place for sight in trouble.sights] == ["train.py:1, rank 1", "train.py:2, rank 2"]


@pytest.mark.parametrize("form", sorted({*FORMATS} - {"concise", "json", "sarif"}))
def test_no_report_for_people_repeats_a_sentence_for_each_place(form: str, clip: Fault) -> None:
    found = case(clip, *(at(line, SAID.format(line - 1)) for line in (12, 40, 88)))
    assert render(found, form).count("are still scaled") == 1


def test_a_fault_in_a_file_is_one_annotation_that_names_the_other_lines(clip: Fault) -> None:
    found = case(
        clip,
        at(12),
        at(40),
        at(88),
        at(7, path="other.py"),
        at(3, path="n.ipynb", cell=1),
        at(3, path="n.ipynb", cell=2),
    )
    rows = render(found, "github").splitlines()
    assert [row.partition(",title")[0] for row in rows] == [
        "::error file=train.py,line=12",
        "::error file=other.py,line=7",
        "::error file=n.ipynb",
    ]
    assert "a fact%0AAlso in lines 40, 88.%0A" in rows[0]
    assert "Also in" not in rows[1]
    assert "Also in line 3 of cell 2.%0A" in rows[2]


def test_sarif_has_a_result_for_each_place_those_of_a_file_together(clip: Fault, checked: Case) -> None:
    name = replace(at(20), detector="source/example-name")
    found = case(clip, at(12), at(40))
    mixed = replace(found, findings=(found.findings[0], Finding(checked.findings[1].fault, (name,)), found.findings[1]))
    results = json.loads(render(mixed, "sarif"))["runs"][0]["results"]
    lines = [each["locations"][0]["physicalLocation"]["region"]["startLine"] for each in results]
    assert lines == [12, 40, 20]
    assert len({each["partialFingerprints"]["torchtriage/v1"] for each in results}) == 2


def test_the_json_of_check_has_one_finding_for_a_file_with_all_its_places(clip: Fault) -> None:
    found = case(clip, at(12, anchor="one"), at(40, anchor="two"), at(7, path="other.py"))
    first, second = json.loads(check.render(found))["findings"]
    assert [item["place"]["line"] for item in first["evidence"]] == [12, 40]
    assert [item["fingerprint"] for item in first["evidence"]] == [each.fingerprint for each in found.findings[:2]]
    assert first["fingerprint"] == found.findings[0].fingerprint
    assert second["evidence"][0]["place"]["path"] == "other.py"


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ([], "0 findings in 2 files."),
        ([at(1)], "1 finding in 2 files."),
        ([at(1), at(2)], "1 finding at 2 places in 2 files."),
        ([at(1), at(2), at(1, path="b.py")], "2 findings (2 errors) at 3 places in 2 files."),
    ],
)
def test_a_finding_is_a_fault_in_a_file_and_its_places_are_counted_beside_it(
    evidence: list[Evidence], said: str, clip: Fault
) -> None:
    assert check.summary(case(clip, *evidence), whole=False) == said


def test_the_summary_counts_by_severity_what_decides_the_exit_code(clip: Fault, checked: Case) -> None:
    name = replace(at(20), detector="source/example-name")
    found = case(clip, at(12), at(40))
    mixed = replace(found, findings=(*found.findings, Finding(checked.findings[1].fault, (name,))))
    assert check.summary(mixed, whole=False) == "2 findings (1 error, 1 info) at 3 places in 2 files."
