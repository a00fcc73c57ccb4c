"""The whole way, as a user walks it: the README's job, from its first line to its verified remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchtriage import triage
from torchtriage.core.case import Case

EXAMPLES = Path(__file__).parent.parent / "examples"
PLANTED = {"input-bound", "clip-before-unscale", "non-finite-origin", "graph-retained"}


class Ran:
    """One `torchtriage run` and all that it left."""

    def __init__(self, script: str, folder: Path) -> None:
        self.folder = folder / "out"
        beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        command = [sys.executable, "-m", "torchtriage", "run", "--out", str(self.folder), "--", str(EXAMPLES / script)]
        self.done = subprocess.run(
            command, capture_output=True, text=True, cwd=folder, env={**os.environ, "PATH": beside}, timeout=300
        )
        self.case: dict[str, Any] = json.loads((self.folder / "case.json").read_text())

    @property
    def findings(self) -> dict[str, dict[str, Any]]:
        return {finding["fault"]: finding for finding in self.case["findings"]}


@pytest.fixture(scope="module")
def ill(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran("slow_and_unstable.py", tmp_path_factory.mktemp("ill"))


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return Ran("healthy.py", tmp_path_factory.mktemp("healthy"))


def test_the_planted_faults_are_found_and_no_others(ill: Ran) -> None:
    assert set(ill.findings) == PLANTED


def test_a_healthy_job_gives_no_finding(healthy: Ran) -> None:
    assert healthy.findings == {}
    assert healthy.done.returncode == 0


@pytest.mark.parametrize("fault", sorted(PLANTED - {"input-bound"}))
def test_each_finding_names_a_line_of_the_script(ill: Ran, fault: str) -> None:
    lines = (EXAMPLES / "slow_and_unstable.py").read_text().splitlines()
    words = {
        "clip-before-unscale": "clip_grad_norm_",
        "non-finite-origin": "log",
        "graph-retained": "append",
    }
    place = ill.findings[fault]["evidence"][0]["place"]
    assert Path(place["path"]).name == "slow_and_unstable.py"
    assert words[fault] in lines[place["line"] - 1]


def test_the_origin_of_the_nan_is_a_module_and_a_step(ill: Ran) -> None:
    place = ill.findings["non-finite-origin"]["evidence"][0]["place"]
    assert place["module"] == "contrast"
    assert place["step"] > 10


def test_the_holder_of_the_graphs_is_named(ill: Ran) -> None:
    assert ill.findings["graph-retained"]["evidence"][0]["place"]["container"] == "history"


def test_every_finding_carries_remedies_that_say_how_to_verify_them(ill: Ran) -> None:
    for finding in ill.findings.values():
        assert finding["remedies"]
        assert all(remedy["verify"] for remedy in finding["remedies"])


def test_the_shares_of_the_step_are_measured_and_sum_to_one(ill: Ran) -> None:
    shares = ill.case["measurements"]["shares"]
    assert list(shares) == ["data", "transfer", "forward", "backward", "optimizer", "communication", "idle", "other"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["data"] > 0.3


def test_verdict_why_and_next_go_to_stderr_and_the_jobs_own_words_to_stdout(ill: Ran) -> None:
    heads = [line for line in ill.done.stderr.splitlines() if line in {"Verdict", "Why", "Next"}]
    assert heads == ["Verdict", "Why", "Next"]
    assert "epoch 0: loss" in ill.done.stdout
    assert "Verdict" not in ill.done.stdout


def test_the_run_folder_holds_the_case_the_report_and_the_record(ill: Ran) -> None:
    names = {path.name for path in ill.folder.iterdir()}
    assert {"case.json", "report.html", "rank0.jsonl", ".gitignore"} <= names
    assert (ill.folder / ".gitignore").read_text() == "*\n"


def test_a_record_is_judged_anew_to_the_same_findings(ill: Ran) -> None:
    command = [sys.executable, "-m", "torchtriage", "read", str(ill.folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"] == ill.case["findings"]


@pytest.mark.parametrize("form", ["console", "json", "sarif", "html", "markdown"])
def test_a_case_is_rendered_again_in_every_form_with_the_same_bytes(ill: Ran, form: str) -> None:
    command = [sys.executable, "-m", "torchtriage", "report", str(ill.folder / "case.json"), "--format", form]
    first, second = (subprocess.run(command, capture_output=True) for _ in range(2))
    assert first.stdout == second.stdout
    assert b"non-finite-origin" in first.stdout


def test_no_line_of_the_record_holds_a_batch(ill: Ran) -> None:
    """Sampled stacks are many numbers of lines, at most 200 rows; no other line comes near the text of a batch."""
    lines = (ill.folder / "rank0.jsonl").read_text().splitlines()
    stacks = [told for told in map(json.loads, lines) if told["kind"] == "stacks"]
    assert max(len(line) for line in lines if not line.startswith('{"kind":"stacks"')) < 8_000
    assert stacks
    assert all(len(told["stacks"]) <= told["samples"] <= 200 for told in stacks)


def test_a_symptom_chooses_the_rooms_whose_probes_go_on() -> None:
    assert triage.suspected(None) == triage.suspected(Case()) == ()
    assert "mixed_precision_and_optimization" in triage.suspected(triage.begun("loss is NaN after 300 steps"))
    assert triage.suspected(triage.begun("GPU out of memory in the middle of the epoch"))[-1] == (
        "tensor_operations_and_memory"
    )
