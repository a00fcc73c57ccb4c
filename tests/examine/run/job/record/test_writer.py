from __future__ import annotations

import errno
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from records import event

from torchtriage.examine.run.job.events import GradNorm, Start
from torchtriage.examine.run.job.record.writer import Writer

# From Python 3.12 on, a fork warns where other tests have left threads of torch behind.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")


def writer(folder: Path, rank: int = 0) -> Writer:
    return Writer(str(folder), lambda: rank, lambda: Start(pid=os.getpid()))


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in path.read_text().splitlines()]


def test_a_process_that_does_nothing_that_matters_leaves_no_file(tmp_path: Path) -> None:
    writer(tmp_path).write(event("something"))

    assert list(tmp_path.iterdir()) == []


def test_what_was_kept_back_follows_the_first_line(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.write(event("early"))
    made.open()
    made.write(event("late"))

    assert kinds(tmp_path / "rank0.jsonl") == ["start", "early", "late"]


def test_a_figure_of_many_steps_waits_for_the_line_after_it(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.open()
    made.write(GradNorm(at=1, optimizer=0, value=2.0))
    before = kinds(tmp_path / "rank0.jsonl")
    made.write(event("late"))

    assert before == ["start"]
    assert kinds(tmp_path / "rank0.jsonl") == ["start", "grad_norm", "late"]


def test_two_processes_of_one_rank_do_not_share_a_file(tmp_path: Path) -> None:
    for each in (writer(tmp_path, 3), writer(tmp_path, 3)):
        each.open()

    assert sorted(path.name for path in tmp_path.iterdir()) == [f"rank3.{os.getpid()}.jsonl", "rank3.jsonl"]


def test_a_file_of_the_jobs_that_took_our_number_is_never_written_to(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.open()
    number = made._file
    assert number is not None
    os.close(number)
    theirs = os.open(tmp_path / "theirs", os.O_CREAT | os.O_RDWR)
    assert theirs == number
    made.write(event("late"))
    made.forked()

    assert (tmp_path / "theirs").read_bytes() == b""
    assert kinds(tmp_path / "rank0.jsonl") == ["start"]
    os.close(theirs)  # raises if it was closed for the job


def test_a_closed_descriptor_ends_the_recording(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.open()
    assert made._file is not None
    os.close(made._file)
    made.write(event("late"))

    assert made.off
    assert kinds(tmp_path / "rank0.jsonl") == ["start"]


def test_a_forked_child_does_not_write_to_its_parents_file(tmp_path: Path) -> None:
    parent = writer(tmp_path)
    parent.open()
    child = os.fork()
    if not child:
        parent.forked()
        parent.write(event("of the child"))
        parent.open()
        os._exit(0)
    os.waitpid(child, 0)
    parent.write(event("of the parent"))

    assert kinds(tmp_path / "rank0.jsonl") == ["start", "of the parent"]
    assert kinds(tmp_path / f"rank0.{child}.jsonl") == ["start", "of the child"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_full_disk_ends_the_recording_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    made = writer(tmp_path)
    made.open()

    def full(*arguments: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("torchtriage.examine.run.job.record.writer.os.write", full)
    made.write(event("lost"))
    monkeypatch.undo()
    made.write(event("after"))

    assert made.off
    assert kinds(tmp_path / "rank0.jsonl") == ["start"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits on file sizes are tested on Linux")
def test_a_line_that_only_half_fits_is_the_last(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.open()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        for _ in range(3):
            made.write(event("x" * 60))
        os._exit(0 if made.off else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (tmp_path / "rank0.jsonl").stat().st_size == 100


def test_a_folder_that_is_gone_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    made = writer(tmp_path / "nowhere")
    made.open()
    made.write(event("lost"))

    assert made.off


def test_workers_of_a_rank_share_one_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        writer(tmp_path, 3).aside(event("fetch"))
    assert kinds(tmp_path / "workers3.jsonl") == ["fetch", "fetch"]

    monkeypatch.setattr("torchtriage.examine.run.job.record.writer.ASIDE", 0)
    writer(tmp_path, 3).aside(event("fetch"))
    assert len(kinds(tmp_path / "workers3.jsonl")) == 2


def test_a_disk_that_keeps_the_job_waiting_ends_the_record_and_not_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks, made = [0], writer(tmp_path)
    write = os.write

    def slow(file: int, data: bytes) -> int:
        ticks[0] += 900_000_000
        return write(file, data)

    monkeypatch.setattr("torchtriage.examine.run.job.record.writer.now", lambda: ticks[0])
    monkeypatch.setattr("torchtriage.examine.run.job.record.writer.os.write", slow)
    made.open()
    for _ in range(4):
        made.write(event("event"))

    assert kinds(tmp_path / "rank0.jsonl") == ["start", "event", "event", "slow"]


def test_numbers_of_numpy_are_written_as_pythons(tmp_path: Path) -> None:
    """A layer that is made with them has them: nn.Linear(np.int64(8), 2)."""
    made = writer(tmp_path)
    made.open()
    made.write(event("shape", size=np.int64(8), share=np.float32(0.5), is_used=np.bool_(True)))
    (row,) = [
        row for line in (tmp_path / "rank0.jsonl").read_text().splitlines() if "size" in (row := json.loads(line))
    ]
    assert (row["size"], row["share"], row["is_used"]) == (8, 0.5, True)
    with pytest.raises(TypeError, match="Object of type object"):
        made.write(event("shape", size=object()))


def test_a_disk_that_is_slow_now_and_then_in_a_long_job_is_borne(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks, made = [0], writer(tmp_path)
    write = os.write

    def slow(file: int, data: bytes) -> int:
        ticks[0] += 900_000_000
        return write(file, data)

    monkeypatch.setattr("torchtriage.examine.run.job.record.writer.now", lambda: ticks[0])
    monkeypatch.setattr("torchtriage.examine.run.job.record.writer.os.write", slow)
    made.open()
    for _ in range(8):
        ticks[0] += 100_000_000_000
        made.write(event("event"))

    assert kinds(tmp_path / "rank0.jsonl") == ["start", *["event"] * 8]
