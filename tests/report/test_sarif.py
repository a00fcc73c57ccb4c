from __future__ import annotations

from typing import Any

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from torchtriage.catalog.page import read
from torchtriage.catalog.walk import pages
from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Place
from torchtriage.core.fault import Fault
from torchtriage.core.finding import Finding
from torchtriage.report.sarif import render

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
NATURAL = {"type": "integer", "minimum": 1}
LOCATION = {
    "type": "object",
    "minProperties": 1,
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": "^[A-Za-z0-9._~:/%-]+$"}},
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "properties": {"startLine": NATURAL, "startColumn": NATURAL, "endLine": NATURAL},
                    "additionalProperties": False,
                },
            },
        }
    },
}
RULE = {
    "type": "object",
    "required": ["id", "shortDescription", "fullDescription", "help", "defaultConfiguration", "properties"],
    "properties": {"shortDescription": MESSAGE, "fullDescription": MESSAGE, "help": MESSAGE},
}
RESULT = {
    "type": "object",
    "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints", "properties"],
    "properties": {
        "level": LEVEL,
        "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
        "relatedLocations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
    },
}
ESSENTIALS = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "properties": {
                            "driver": {
                                "required": ["name", "version", "rules"],
                                "properties": {"rules": {"type": "array", "items": RULE}},
                            }
                        }
                    },
                    "results": {"type": "array", "items": RESULT},
                },
            },
        },
    },
}


def run_of(case: Case) -> Any:
    return msgspec.json.decode(render(case))["runs"][0]


def test_every_case_holds_what_sarif_requires(case: Case) -> None:
    jsonschema.validate(msgspec.json.decode(render(case)), ESSENTIALS)


def test_every_result_points_to_its_rule(case: Case) -> None:
    run = run_of(case)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [f.fault.slug for f in case.findings]


def test_levels_follow_severity(checked: Case) -> None:
    assert [result["level"] for result in run_of(checked)["results"]] == ["error", "note"]


def test_the_fingerprint_is_that_of_the_finding(checked: Case) -> None:
    found = [result["partialFingerprints"]["torchtriage/v1"] for result in run_of(checked)["results"]]
    assert found == [finding.fingerprint for finding in checked.findings]


def test_a_line_of_a_notebooks_cell_is_no_region_of_its_file(checked: Case) -> None:
    line, cell = (result["locations"][0]["physicalLocation"] for result in run_of(checked)["results"])
    assert line["region"] == {"startLine": 41, "startColumn": 5, "endLine": 41}
    assert cell == {"artifactLocation": {"uri": "notes/try%20out.ipynb"}}


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("train.py", "train.py"),
        ("src/a b/100%.py", "src/a%20b/100%25.py"),
        ("/data/größe.py", "file:///data/gr%C3%B6%C3%9Fe.py"),
    ],
)
def test_a_path_becomes_a_uri(path: str, uri: str, clip: Fault) -> None:
    case = Case(findings=(Finding(clip, (Evidence("run/example-clip", Place(path, 1), "a fact"),)),))
    assert run_of(case)["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_what_was_not_seen_is_a_notification(ill_run: Case) -> None:
    told = run_of(ill_run)["invocations"][0]["toolExecutionNotifications"]
    assert [note["descriptor"]["id"] for note in told] == [item.detector for item in ill_run.inconclusive]


def test_a_rule_brings_the_page_of_its_fault(clip: Fault) -> None:
    page = read(next(iter(pages().values())))
    fault = replace(clip, slug=page.fault.slug)
    case = Case(findings=(Finding(fault, (Evidence("run/example-clip", Place("a.py", 1), "a fact"),)),))
    text = run_of(case)["tool"]["driver"]["rules"][0]["help"]["text"]
    assert page.sections["What happens"].strip() in text
    assert clip.remedies[0].title in text
