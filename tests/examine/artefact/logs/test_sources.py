"""Who writes a line, and in what code: prefixes of launchers and containers, marks of UTF-16; and how ends are told."""

from __future__ import annotations

from pathlib import Path

import pytest

import torchtriage
from torchtriage.core.case import Case
from torchtriage.examine.artefact.kinds import found as kinds
from torchtriage.examine.artefact.logs import Logs, read
from torchtriage.triage.messages import decoded

TRACE = (
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 27, in step',
    "    loss = criterion(model(x), y)",
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x9 and 8x16)",
)
OTHER = (
    "Traceback (most recent call last):",
    '  File "/job/train.py", line 40, in load',
    "    return rows[index]",
    "IndexError: list index out of range",
)


def logs(folder: Path, text: str) -> Logs:
    (folder / "job.log").write_text(text)
    return read([str(folder / "job.log")], decoded)


def mixed(one: str, two: str) -> str:
    """Two tracebacks whose lines come in turns, each line with what stands before it."""
    return "\n".join(line for pair in zip(TRACE, OTHER, strict=True) for line in (one + pair[0], two + pair[1])) + "\n"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("(RayTrainWorker pid=4242, ip=10.0.0.1) ", "(RayTrainWorker pid=4243, ip=10.0.0.1) "),
        ("(pid=4242) ", "(pid=4243) "),
        ("(train_fn pid=4242, ip=10.0.0.1) ", "(train_fn pid=4242, ip=10.0.0.2) "),
        ("[pod/job-worker-0/pytorch] ", "[pod/job-worker-1/pytorch] "),
        ("trainer-0  | ", "trainer-1  | "),
        (
            "[pod/job-worker-0/pytorch] 2026-01-02T03:04:05.123456789Z ",
            "[pod/job-worker-1/pytorch] 2026-01-02T03:04:05Z ",
        ),
    ],
)
def test_processes_that_write_at_once_are_told_apart(one: str, two: str, tmp_path: Path) -> None:
    told = logs(tmp_path, mixed(one, two))
    assert [(said.headline[:12], str(said.frame), said.rank) for said in told.said] == [
        ("RuntimeError", "/job/train.py:27", None),
        ("IndexError: ", "/job/train.py:40", None),
    ]


@pytest.mark.parametrize(
    "before",
    [
        "(RayTrainWorker pid=4242, ip=10.0.0.1) [rank3]: ",
        "[pod/job-worker-0/pytorch] [default3]:",
        "2026-01-02T03:04:05.123456789Z stderr F [rank3]: ",
        "\x1b[36m(RayTrainWorker pid=4242)\x1b[0m [rank3]: ",
    ],
)
def test_the_rank_is_told_where_a_prefix_says_it(before: str, tmp_path: Path) -> None:
    told = logs(tmp_path, "".join(f"{before}{line}\n" for line in TRACE))
    assert [(said.rank, str(said.frame)) for said in told.said] == [(3, "/job/train.py:27")]
    assert told.ranks == (3,)


def test_a_worker_of_ray_has_the_rank_that_it_said(tmp_path: Path) -> None:
    workers = [f"(RayTrainWorker pid={4242 + rank}) " for rank in range(2)]
    said = [
        f"{who}Setting up process group for: env:// [rank={rank}, world_size=2]" for rank, who in enumerate(workers)
    ]
    told = logs(tmp_path, "\n".join(said) + "\n" + mixed(workers[1], workers[0]))
    assert [(each.rank, str(each.frame)) for each in told.said] == [(1, "/job/train.py:27"), (0, "/job/train.py:40")]
    assert told.ranks == (0, 1)


@pytest.mark.parametrize(
    "line",
    [
        "(pid) Error: no",
        "pid=3 | loss",
        "2026-01-02 03:04:05 step 3",
        "epoch | loss | time",
        "[rank=3] hello",
        "(4242) x",
    ],
)
def test_what_only_looks_like_a_prefix_is_none(line: str, tmp_path: Path) -> None:
    told = logs(tmp_path, f"{line}\n" + "".join(f"{each}\n" for each in TRACE))
    assert [(said.rank, said.line) for said in told.said if said.kind == "raised"][-1] == (None, 5)
    assert told.ranks == ()


@pytest.mark.parametrize("code", ["utf-16", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_log_is_read_in_the_code_that_its_mark_says(code: str, ends: str, tmp_path: Path) -> None:
    mark = "\ufeff" if code == "utf-16-be" else ""
    text = "epoch 1 loss 0.5 – gut 好\n" + "\n".join(TRACE) + "\n"
    (tmp_path / "train.log").write_bytes((mark + text.replace("\n", ends)).encode(code))
    assert [each.kind for each in kinds([str(tmp_path)])[0]] == ["logs"]
    case = torchtriage.read([tmp_path])
    assert {(each.fault.slug, each.evidence[0].place.line) for each in case.findings} == {("shape-mismatch", 5)}


def test_a_character_may_stand_on_the_edge_of_what_is_read_at_once(tmp_path: Path) -> None:
    text = "x" * (2**19 - 3) + "\n" + "好😀\n" * 1000 + "\n".join(TRACE) + "\n"
    (tmp_path / "train.log").write_bytes(text.encode("utf-16"))
    (said,) = read([str(tmp_path / "train.log")], decoded).said
    assert said.line == 1005


def test_bytes_that_begin_as_utf_16_and_are_none_are_no_log(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\xff\xfe" + bytes(range(32)) * 200)
    (tmp_path / "job.log").write_text("epoch 1 loss 0.5\n")
    (artefact,), unseen = kinds([str(tmp_path)])
    assert artefact.paths == (f"{tmp_path}/job.log",)
    assert len(unseen) == 1


def end(folder: Path, text: str) -> tuple[str, str]:
    (folder / "job.log").write_text(text)
    case: Case = torchtriage.read([folder / "job.log"])
    (item,) = [item for item in case.inconclusive if item.detector == "log/end"]
    return item.why, item.unblock


KERNEL = "[99.1] Out of memory: Killed process 4242 (python) total-vm:99kB, anon-rss:49283072kB, file-rss:9kB, shmem-rss:2097152kB"
SUMMARY = "Root Cause (first observed failure):\n[0]:\n  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 4242)\n"


def test_a_kill_by_the_kernel_tells_what_the_process_held_and_what_to_do(tmp_path: Path) -> None:
    why, do = end(tmp_path, KERNEL + "\n")
    assert "(it held 47.0 GiB of its own, and 2.0 GiB of shared memory)" in why
    assert "fewer DataLoader workers" in do
    assert "memory-growth" in do


def test_the_kill_of_a_rank_that_the_kernel_explains_is_told_with_the_same_way_out(tmp_path: Path) -> None:
    why, do = end(tmp_path, f"{KERNEL}\n{SUMMARY}{'=' * 20}\n")
    assert "Out of memory" in why
    assert "--mem, limits.memory" in do


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7.0.", "--mem, limits.memory"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***", "--time"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***", "--signal"),
        ("NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.", "dcgmi diag"),
        ("    Exit Code:    137", "128 + 9"),
        ("command terminated with exit code 137", "128 + 9"),
        ("trainer-0 exited with code 137", "128 + 9"),
    ],
)
def test_each_end_from_outside_has_its_way_out(line: str, words: str, tmp_path: Path) -> None:
    assert words in end(tmp_path, f"epoch 1 loss 0.5\n{line}\n")[1]


@pytest.mark.parametrize(
    "line", ["Exit Code: 0", "exited with code 1", "step 137", "loss 137 exit codes", "code 1370", "Exit Code: 1371"]
)
def test_other_codes_are_no_kill(line: str, tmp_path: Path) -> None:
    told = logs(tmp_path, f"epoch 1 loss 0.5\n{line}\n")
    assert told.said == ()
