from __future__ import annotations

import json
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("gradients-not-zeroed", "fault"),
        ("debugging-techniques", "specialist"),
        ("not-learning", "symptom"),
        ("compute-bound", "verdict"),
    ],
)
def test_every_name_that_a_report_prints_has_a_page(name: str, kind: str, call: Any) -> None:
    text, page = call("explain", name), json.loads(call("explain", name, "--json").out)
    assert text.code == 0
    assert page["schema"] == 1
    assert page["kind"] == kind
    assert page[kind] == name
    assert text.out.startswith(f"{name}  {kind}\n")


def test_a_faults_page_has_its_head_and_its_sections(call: Any) -> None:
    page = json.loads(call("explain", "gradients-not-zeroed", "--json").out)
    assert list(page["sections"]) == ["What happens", "Bad", "Good", "Not this"]
    assert page["remedies"][0]["verify"]
    text = call("explain", "gradients-not-zeroed").out
    assert all(section in text for section in page["sections"])


@pytest.mark.parametrize(
    ("name", "proven_on", "sentence"),
    [
        ("gradients-not-zeroed", ["cpu"], "Tests show the harm on the CPU."),
        ("sync-bound", ["sim"], "Tests show the harm on the simulated accelerator."),
        ("bce-under-autocast", ["cpu", "sim"], "Tests show the harm on the CPU and the simulated accelerator."),
        ("benchmark-with-deterministic", [], "No test shows the harm: needs cuDNN on a GPU"),
    ],
)
def test_a_faults_page_says_what_has_shown_its_harm(name: str, proven_on: list[str], sentence: str, call: Any) -> None:
    assert json.loads(call("explain", name, "--json").out)["proven_on"] == proven_on
    assert sentence in " ".join(call("explain", name).out.split())


def test_a_symptom_names_the_faults_that_explain_it(call: Any) -> None:
    page = json.loads(call("explain", "not-learning", "--json").out)
    assert "gradients-not-zeroed" in [fault["fault"] for fault in page["faults"]]


def test_a_specialist_lists_its_faults_and_symptoms(call: Any) -> None:
    page = json.loads(call("explain", "debugging-techniques", "--json").out)
    assert "gradients-not-zeroed" in [fault["fault"] for fault in page["faults"]]
    assert "not-learning" in [symptom["symptom"] for symptom in page["symptoms"]]


def test_an_unknown_name_is_answered_with_the_nearest_of_all_kinds(call: Any) -> None:
    said = call("explain", "gradient-not-zeroed")
    assert said.code == 2
    assert said.out == ""
    assert "gradients-not-zeroed" in said.err
