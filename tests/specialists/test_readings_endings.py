"""Why a job ended badly, from what its record holds beside the error."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.examine.run.record.crash import Crash
from torchtriage.specialists.debugging_techniques.readings.endings import (
    dataset_empty,
    ended_by_input,
    ended_not_finite,
    native_crash,
    stopped_from_outside,
)

EXIT = {"kind": "exit", "code": 4, "path": "engine.py", "line": 12, "not_finite": [["loss_value", "nan"]]}
LEFT_OUT = {
    "kind": "refused", "step": 21, "at": 21, "times": 1,
    "batch": {
        "index": 21, "dataset": "Sensors", "path": "engine.py", "line": 7, "further": [],
        "tensors": [{"name": "batch[0]", "value": "infinity", "bad": 1, "of": 60, "samples": [7], "shape": [10, 6]}],
    },
}  # fmt: skip
EMPTY = {"kind": "loader", "step": 9, "dataset": "Records", "batch_size": 20, "length": 0, "built": ["train.py", 27]}
FAILED = Crash("ZeroDivisionError", "float division by zero", "")


def record(*events: dict[str, Any], steps: int = 21, processes: Any = (), code: int = 1, **rest: Any) -> RunRecord:
    rows = [{"kind": "step", "step": step, "backward": 1} for step in range(steps)]
    ended = {"kind": "ended", "code": code, **rest.pop("ended", {})}
    return RunRecord((RankRecord(0, (*rows, *events)),), processes=(*processes, ended), **rest)


@pytest.mark.parametrize(
    ("signal", "is_found"),
    [
        ("SIGTERM", True),
        ("SIGHUP", True),
        ("SIGTERM (15)", True),
        ("SIGKILL", False),
        ("SIGSEGV", False),
    ],
)
def test_a_signal_that_is_sent_from_outside_stopped_the_job(signal: str, is_found: bool) -> None:
    seen = list(stopped_from_outside.look(record(ended={"signal": signal}, code=143)))
    assert [each.place.step for each in seen] == [21] * is_found


@pytest.mark.parametrize(
    ("code", "is_found"), [(143, True), (129, True), (130, False), (139, False), (137, False), (15, False), (1, False)]
)
def test_a_handler_and_a_shell_pass_the_signal_on_as_a_code(code: int, is_found: bool) -> None:
    assert bool(list(stopped_from_outside.look(record(code=code)))) == is_found


@pytest.mark.parametrize(
    ("counters", "is_found"),
    [
        ({"oom_counted": True}, True),
        ({"oom_counted": False}, False),
        ({"oom_counted": True, "oom": {"by": "cgroup", "kills": 1}}, False),
    ],
)
@pytest.mark.parametrize("ended", [{"signal": "SIGKILL (137)"}, {}])
def test_sigkill_came_from_outside_where_the_kernel_counted_no_kill_for_memory(
    ended: dict[str, Any], counters: dict[str, Any], is_found: bool
) -> None:
    seen = list(stopped_from_outside.look(record(ended={**ended, **counters}, code=137)))
    assert bool(seen) == is_found


@pytest.mark.parametrize(
    ("signal", "code", "is_found"),
    [
        ("SIGSEGV", 139, True),
        ("SIGABRT", 134, True),
        ("SIGKILL", 137, False),
        ("SIGTERM", 143, False),
        (None, 139, True),
    ],
)
def test_a_signal_of_native_code_is_a_crash(signal: str | None, code: int, is_found: bool) -> None:
    seen = list(native_crash.look(record(ended={"signal": signal}, code=code)))
    assert [each.place.step for each in seen] == [21] * is_found


def test_what_the_job_tested_before_it_left_is_named() -> None:
    (seen,) = ended_not_finite.look(record(processes=[EXIT]))
    assert (seen.place.path, seen.place.line, seen.place.step) == ("engine.py", 12, 21)
    assert seen.fact == "`loss_value` is nan on the line where the job ends itself, or in its condition"


def test_an_assertion_is_a_test_too() -> None:
    error = {"kind": "error", "step": 21, "error": "AssertionError", "path": "a.py", "line": 3}
    (seen,) = ended_not_finite.look(record({**error, "not_finite": [["loss", "inf"]]}))
    assert (seen.place.path, seen.place.line) == ("a.py", 3)
    assert list(ended_not_finite.look(record(error))) == []


@pytest.mark.parametrize(
    "other",
    [
        record(processes=[EXIT], code=0),
        record(processes=[{**EXIT, "not_finite": []}]),
        record({"kind": "non-finite", "step": 20}, processes=[EXIT]),
        record(LEFT_OUT, processes=[EXIT]),
        record(),
    ],
    ids=["ended well", "finite", "seen before", "of a batch", "no exit"],
)
def test_an_exit_is_no_origin_where_it_tested_nothing_or_the_origin_is_known(other: RunRecord) -> None:
    assert list(ended_not_finite.look(other)) == []


def test_a_batch_at_which_the_job_ended_itself_is_named_with_its_samples() -> None:
    (seen,) = ended_by_input.look(record(LEFT_OUT, processes=[EXIT]))
    assert (seen.place.path, seen.place.line, seen.place.step) == ("engine.py", 7, 21)
    assert seen.fact.startswith("batch 21 of Sensors held infinity before anything was computed: 1 of 60 values")
    assert seen.fact.endswith("the job ended itself when `loss_value` was nan")


@pytest.mark.parametrize(
    "other",
    [
        record({**LEFT_OUT, "step": 13}, processes=[EXIT]),
        record(LEFT_OUT, processes=[{**EXIT, "not_finite": []}]),
        record(LEFT_OUT, processes=[EXIT], code=0),
    ],
    ids=["long before", "another reason", "ended well"],
)
def test_a_batch_that_was_left_out_is_no_reason_of_another_end(other: RunRecord) -> None:
    assert list(ended_by_input.look(other)) == []


def test_a_loader_without_a_batch_is_named_where_an_error_ended_the_job() -> None:
    (seen,) = dataset_empty.look(record(EMPTY, crashes=(FAILED,)))
    assert (seen.place.path, seen.place.line) == ("train.py", 27)
    assert seen.fact == "the DataLoader over Records (batch_size=20) has no batch"


@pytest.mark.parametrize(
    "other",
    [
        record(EMPTY),
        record(EMPTY, code=0, crashes=(FAILED,)),
        record({**EMPTY, "length": 3}, crashes=(FAILED,)),
        record({**EMPTY, "length": None}, crashes=(FAILED,)),
    ],
    ids=["an exit", "ended well", "batches", "no length"],
)
def test_an_empty_loader_is_let_be_where_no_error_followed(other: RunRecord) -> None:
    assert list(dataset_empty.look(other)) == []
