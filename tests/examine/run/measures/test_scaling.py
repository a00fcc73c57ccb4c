"""A job of several ranks held against its own case on one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchtriage import triage
from torchtriage.core.case import Case
from torchtriage.core.errors import TriageError
from torchtriage.core.evidence import Evidence, Place, Verdict
from torchtriage.examine.run.measures import scaling

STEP = {
    "kind": "step", "seconds": 0.1, "data": 0.0, "transfer": 0.0, "forward": 0.03, "backward": 0.06, "optimizer": 0.01,
    "probes": 0.0, "batches": 1, "epochs": 0, "forwards": 1, "backwards": 1, "cpu": 0.1, "queued": 0.0,
}  # fmt: skip
SETUP = {
    "kind": "setup", "step": 0, "models": [{"parameters": {"float32": 100}}], "loaders": [], "optimizers": [],
    "batch": [{"shape": [32, 8], "dtype": "torch.float32"}],
}  # fmt: skip
ONE_PROCESS: dict[str, Any] = {"ranks": {"world_size": 1}, "setup": {"parameters": {"float32": 100}}}


def run(folder: Path, ranks: int, seconds: float) -> Path:
    """The record of a job of RANKS whose steps take so many SECONDS each."""
    folder.mkdir()
    for rank in range(ranks):
        start = {"kind": "start", "rank": rank, "world_size": ranks}
        rows = [{**STEP, "step": step, "seconds": seconds} for step in range(40)]
        lines = [start, SETUP, *rows, {"kind": "end", "why": "exit"}]
        (folder / f"rank{rank}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def alone(folder: Path) -> Path:
    """The folder of a run of one process, with its case."""
    run(folder, 1, 0.1)
    (folder / "case.json").write_bytes(triage.judge(folder).encode())
    return folder


def test_efficiency_is_the_pace_of_all_ranks_over_that_of_as_many_processes(tmp_path: Path) -> None:
    told = scaling.noted(alone(tmp_path / "one"))
    assert told["samples_per_second"] == pytest.approx(320)
    two = run(tmp_path / "two", 2, 0.125)
    scaling.keep(told, two)
    case = triage.judge(two)
    assert case.measurements["ranks"]["scaling"] == {
        "efficiency": pytest.approx(0.8),
        "ranks": 2,
        "samples_per_second": pytest.approx(512),
        "baseline_samples_per_second": pytest.approx(320),
    }
    assert "scale-needed" in case.shown


def test_a_baseline_with_something_wrong_with_it_does_not_call_for_scale(tmp_path: Path) -> None:
    told = scaling.noted(alone(tmp_path / "one"))
    two = run(tmp_path / "two", 2, 0.125)
    for spoiled in ({"found": ["input-bound"]}, {"computes": False}):
        scaling.keep({**told, **spoiled}, two)
        assert "scale-needed" not in triage.judge(two).shown


def test_another_model_is_no_measure(tmp_path: Path) -> None:
    two = run(tmp_path / "two", 2, 0.125)
    scaling.keep({**scaling.noted(alone(tmp_path / "one")), "parameters": 7}, two)
    case = triage.judge(two)
    assert "scaling" not in case.measurements["ranks"]
    assert "run/scale-needed" in {each.detector for each in case.inconclusive}


def test_a_case_without_its_record_tells_its_pace_by_its_batch(tmp_path: Path) -> None:
    measured = {**ONE_PROCESS, "step_time": {"median": 0.1}}
    measured["setup"] = {**measured["setup"], "batch": {"image": {"shape": [16, 3, 8, 8]}}}
    verdict = Verdict("compute-bound", "it computes", (Evidence("run/compute-share", Place(), "seen"),))
    path = tmp_path / "case.json"
    path.write_bytes(Case(measurements=measured, verdicts=(verdict,)).encode())
    assert scaling.noted(path) == {"samples_per_second": 160, "parameters": 100, "computes": True, "found": []}


@pytest.mark.parametrize(
    ("measured", "why"),
    [
        ({}, "no case of a run"),
        ({"ranks": {"world_size": 2}}, "case of 2 processes"),
        (ONE_PROCESS, "how many samples"),
    ],
)
def test_what_is_no_baseline_is_refused_before_a_job_starts(tmp_path: Path, measured: Any, why: str) -> None:
    (tmp_path / "case.json").write_bytes(Case(measurements=measured).encode())
    with pytest.raises(TriageError, match=why):
        scaling.noted(tmp_path)
    with pytest.raises(TriageError, match="cannot be read"):
        scaling.noted(tmp_path / "nothing.json")
