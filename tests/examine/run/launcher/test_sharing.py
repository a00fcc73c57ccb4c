"""Several launchers of one job, as on several nodes: they share a folder, one of them judges, attempts are kept apart."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchtriage.core.errors import TriageError
from torchtriage.examine.run.launcher import sharing
from torchtriage.examine.run.launcher.launch import entered
from torchtriage.examine.run.launcher.sharing import Member, joins, leads, member
from torchtriage.examine.run.ranks import attempts
from torchtriage.examine.run.reader import load
from torchtriage.examine.run.record import RankRecord
from torchtriage.report.keep import folder as new_folder

Event = dict[str, Any]
TORCHRUN = ["torchrun", "--nnodes", "2", "--node-rank=1", "--rdzv-endpoint", "a:29500", "train.py", "--node_rank", "7"]
SLURM = {"SLURM_JOB_ID": "77", "SLURM_PROCID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "8"}
STEP = {**SLURM, "SLURM_STEP_NUM_TASKS": "8", "SLURM_STEP_ID": "1", "SLURM_PROCID": "5"}

MEMBERS = [
    ("a script", ["train.py"], {}, (None, None, 1, None)),
    ("torchrun on one node", ["torchrun", "--nproc-per-node", "2", "train.py"], {}, (None, None, 1, None)),
    ("torchrun on two", TORCHRUN, {}, ("a:29500", 1, 2, None)),
    (
        "an elastic one",
        ["torchrun", "--nnodes=1:4", "--rdzv_id", "x/y", "--rdzv-endpoint=a", "t.py"],
        {},
        ("x/y a", None, 1, "x-y"),
    ),
    (
        "a numbered torchrun in Kubernetes",
        ["torchrun", "t.py"],
        {"PET_NNODES": "2", "PET_NODE_RANK": "1", "PET_RDZV_ID": "k"},
        ("k", 1, 2, "k"),
    ),
    (
        "accelerate",
        [
            "accelerate",
            "launch",
            "--num_machines",
            "2",
            "--machine_rank",
            "0",
            "--main_process_ip",
            "a",
            "--main_process_port",
            "1",
            "t.py",
        ],
        {},
        ("a:1", 0, 2, None),
    ),
    ("a batch script of Slurm", ["train.py"], SLURM, (None, None, 1, "slurm-77")),
    ("one that was requeued", ["train.py"], {**SLURM, "SLURM_RESTART_COUNT": "2"}, (None, None, 1, "slurm-77-r2")),
    ("a task of a step", ["train.py"], STEP, ("slurm-77 step 1", 5, 8, "slurm-77")),
    (
        "a step for each node",
        TORCHRUN[:3] + TORCHRUN[4:],
        {**SLURM, "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_ID": "3"},
        ("slurm-77 a:29500", None, 2, "slurm-77"),
    ),
    (
        "a worker of torchrun",
        ["python", "t.py"],
        {
            "RANK": "1",
            "WORLD_SIZE": "2",
            "TORCHELASTIC_RUN_ID": "id",
            "TORCHELASTIC_RESTART_COUNT": "1",
            "MASTER_ADDR": "a",
            "MASTER_PORT": "1",
        },
        ("id-r1 a:1", 1, 2, "id-r1"),
    ),
    ("no name", ["torchrun", "t.py"], {"TORCHELASTIC_RUN_ID": "none", "NODE_RANK": "x"}, (None, None, 1, None)),
    ("a name that is none", ["torchrun", "--rdzv-id", "..", "t.py"], {}, (None, None, 1, None)),
    ("an option without its value", ["torchrun", "--nnodes"], {}, (None, None, 1, None)),
]


@pytest.mark.parametrize(("words", "outer", "told"), [case[1:] for case in MEMBERS], ids=[case[0] for case in MEMBERS])
def test_a_launcher_knows_its_job_and_its_place_in_it(
    words: list[str], outer: dict[str, str], told: tuple[Any, ...]
) -> None:
    seen = member(words, outer)

    assert (seen.job, seen.index, seen.size, seen.name) == told


def nodes(*indices: int | None, job: str = "one", size: int = 2) -> list[Member]:
    return [Member(job, index, size, token=f"t{number}") for number, index in enumerate(indices)]


def write(folder: Path, name: str, *events: Event) -> None:
    with (folder / name).open("a") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events))


def test_two_launchers_of_one_job_share_a_folder_and_those_of_others_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "run"
    first, second, again = nodes(0, 1, 1)

    assert entered(place, first) == (place, "processes.jsonl")
    assert entered(place, second) == (place, "processes.t1.jsonl")
    for other in (again, Member("another", 2), Member()):
        with pytest.raises(TriageError, match="not empty"):
            entered(place, other)
    assert [each["launcher"] for each in sharing.launchers(place)] == ["t0", "t1"]


def test_one_that_nobody_numbers_joins_until_the_first_has_ended(tmp_path: Path) -> None:
    first, second, late = nodes(None, None, None)
    entered(tmp_path / "run", first)
    entered(tmp_path / "run", second)
    write(tmp_path / "run", "processes.jsonl", {"kind": "ended", "launcher": "t0"})

    assert not joins(tmp_path / "run", late)


def test_a_folder_that_is_just_being_made_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".gitignore").touch()
    second = nodes(0, 1)[1]

    def make(_seconds: float) -> None:
        (tmp_path / sharing.JOB).write_text("one\n")

    monkeypatch.setattr("torchtriage.examine.run.launcher.sharing.time.sleep", make)
    assert joins(tmp_path, second)


def test_one_that_is_never_made_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passed = iter([0.0, 1.0, 3.0])
    monkeypatch.setattr("torchtriage.examine.run.launcher.sharing.time.monotonic", lambda: next(passed))
    monkeypatch.setattr("torchtriage.examine.run.launcher.sharing.time.sleep", lambda _: None)

    assert not joins(tmp_path, nodes(0)[0])


def test_folders_are_named_by_the_job_and_found_again_by_its_other_launchers(tmp_path: Path) -> None:
    first, second = nodes(0, 1)

    def made(who: Member) -> str:
        with new_folder(None, tmp_path, "slurm-77", lambda place: joins(place, who)) as place:
            return entered(place, who)[0].name

    assert [made(each) for each in (first, second)] == ["slurm-77", "slurm-77"]
    assert [made(each) for each in nodes(0, 1, job="another step")] == ["slurm-77-2", "slurm-77-2"]
    assert made(Member()) == "slurm-77-3"


def start(token: str, **more: Any) -> Event:
    return {"kind": "start", "rank": 0, "launcher": token, "time": 1, **more}


def test_the_launcher_of_rank_0_judges_whatever_their_numbers(tmp_path: Path) -> None:
    first, second = nodes(0, 1)
    entered(tmp_path / "run", first)
    entered(tmp_path / "run", second)
    assert [leads(tmp_path / "run", each) for each in (first, second, Member())] == [True, False, True]

    write(tmp_path / "run", "rank0.jsonl", start("t0"))
    write(tmp_path / "run", "rank0.r1.jsonl", start("t1", time=2))
    assert [leads(tmp_path / "run", each) for each in (first, second)] == [False, True]


def test_without_rank_0_and_without_numbers_the_one_that_made_the_folder_judges(tmp_path: Path) -> None:
    first, second = nodes(None, None)
    entered(tmp_path / "run", first)
    entered(tmp_path / "run", second)

    assert [leads(tmp_path / "run", each) for each in (first, second)] == [True, False]


@pytest.mark.parametrize(
    ("comes", "ends", "waits"),
    [(True, True, 0.0), (True, False, sharing.OTHERS), (False, False, sharing.ABSENT)],
    ids=["it has ended", "it never ends", "it never came"],
)
def test_others_are_waited_for_but_not_for_ever(
    comes: bool, ends: bool, waits: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("torchtriage.examine.run.launcher.sharing.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(
        "torchtriage.examine.run.launcher.sharing.time.sleep", lambda more: clock.append(clock.pop() + more)
    )
    first, second = nodes(0, 1)
    entered(tmp_path / "run", first)
    if comes:
        entered(tmp_path / "run", second)
    if ends:
        write(tmp_path / "run", "processes.t1.jsonl", {"kind": "ended", "launcher": "t1"})
    sharing.await_others(tmp_path / "run", first)

    assert clock[0] == pytest.approx(waits, abs=0.2)


def test_one_launcher_waits_for_nobody(tmp_path: Path) -> None:
    sharing.await_others(tmp_path / "nowhere", Member())


def test_a_launcher_that_has_not_ended_is_told_and_each_rank_has_the_end_of_its_own(tmp_path: Path) -> None:
    write(
        tmp_path,
        "processes.jsonl",
        {"kind": "launcher", "launcher": "t0", "host": "a"},
        {"kind": "ended", "code": 0, "launcher": "t0"},
    )
    write(tmp_path, "processes.t1.jsonl", {"kind": "launcher", "launcher": "t1", "host": "b"})
    for rank in (0, 1):
        write(tmp_path, f"rank{rank}.jsonl", start(f"t{rank}", rank=rank, world_size=2), {"kind": "step", "step": 3})
    said = {item.why for item in load.read(tmp_path).inconclusive}

    assert "1 of 2 launchers had not ended when the run was judged: b" in said


def record(rank: int, restart: int, time: int, *events: Event, **more: Any) -> RankRecord:
    first = {"kind": "start", "rank": rank, "world_size": 2, "restart": restart, "time": time, "launcher": "t", **more}
    return RankRecord(rank, (first, {"kind": "step", "step": 4}, *events))


ERROR: Event = {"kind": "error", "step": 5, "error": "ValueError", "path": "t.py", "line": 3, "time": 20}
LATER: Event = {**ERROR, "error": "RuntimeError", "time": 30}
OLD, NEW, OTHER = record(0, 0, 10), record(0, 1, 100), record(1, 0, 11)
ATTEMPTS = [
    ("none", [OLD, OTHER], [OLD, OTHER]),
    ("all anew", [OLD, NEW, OTHER, new := record(1, 1, 101)], [NEW, new]),
    ("one left nothing the second time", [OLD, NEW, OTHER], [NEW]),
    ("its own node did not count", [OLD, NEW, record(1, 0, 12, launcher="u"), new := record(1, 0, 102, launcher="u")], [NEW, new]),
    ("it left nothing the first time, nor counted", [OLD, NEW, new := record(1, 0, 99, launcher="u")], [NEW, new]),
    ("it left nothing the second time, nor counted", [OLD, NEW, record(1, 0, 12, launcher="u")], [NEW]),
    ("fewer ranks", [OLD, new := record(0, 1, 100, world_size=1), OTHER], [new]),
    ("two processes of one rank", [OLD, NEW, new := record(0, 1, 99)], [NEW, new]),
]  # fmt: skip


@pytest.mark.parametrize(("records", "last"), [case[1:] for case in ATTEMPTS], ids=[case[0] for case in ATTEMPTS])
def test_the_last_attempt_is_told_from_the_earlier_ones(records: list[RankRecord], last: list[RankRecord]) -> None:
    kept, earlier = attempts.divided(records)

    assert {id(each) for each in kept} == {id(each) for each in last}
    assert {id(each) for each in earlier} == {id(each) for each in records} - {id(each) for each in last}


def test_of_earlier_attempts_the_first_error_is_told_first() -> None:
    (item,) = attempts.told([record(0, 0, 10, LATER), record(1, 0, 10, ERROR), record(1, 1, 50)])

    assert item.why.startswith(
        "the job was started anew 2 times: rank 1 ended at step 5 with ValueError at t.py:3; rank 0 "
    )
    assert list(attempts.told([])) == []


TRAIN = """
import os, torch
torch.manual_seed(0)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for step in range(12):
    assert step < 8 or os.environ["RANK"] == "0" or os.environ["TORCHELASTIC_RESTART_COUNT"] != "0" or "FLAKY" not in os.environ
    optimizer.zero_grad()
    model(torch.randn(16, 8)).square().mean().backward()
    optimizer.step()
"""


def go(place: Path, *words: str, **extra: str) -> subprocess.Popen[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", **extra}
    command = [sys.executable, "-m", "torchtriage", "run", *words]
    return subprocess.Popen(
        command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.skipif(shutil.which("torchrun") is None, reason="torchrun stands beside the torch that has it")
def test_two_nodes_leave_one_case_of_all_ranks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    how = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"]
    words = [["--", "torchrun", *how, "--rdzv-id", "j1", "--node-rank", str(node), "train.py"] for node in (0, 1)]
    launched = [go(tmp_path, *each) for each in words]
    said = [each.communicate(timeout=200)[0] for each in launched]

    assert [each.returncode for each in launched] == [0, 0], said
    (place,) = (tmp_path / "torchtriage-runs").iterdir()
    assert place.name == "j1"
    judged = json.loads((place / "case.json").read_text())
    assert [each["steps"] for each in judged["measurements"]["ranks"]["each"]] == [12, 12]
    assert sorted("the one with rank 0 judges them" in each for each in said) == [False, True]


def test_an_attempt_that_failed_is_told_and_the_next_is_judged(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    words = ["-m", "torch.distributed.run", "--standalone", "--max-restarts", "1", "--nproc-per-node", "2", "train.py"]
    launched = go(tmp_path, "--", sys.executable, *words, FLAKY="1", SLURM_JOB_ID="77")
    said, _ = launched.communicate(timeout=200)

    assert launched.returncode == 0, said
    place = tmp_path / "torchtriage-runs/slurm-77"
    assert {"rank0.jsonl", "rank0.r1.jsonl", "rank1.jsonl", "rank1.r1.jsonl"} <= {each.name for each in place.iterdir()}
    (item,) = (each for each in load.read(place).inconclusive if each.detector == "run/restarts")
    assert "once: rank 1 ended at step 8 with AssertionError at train.py:7" in item.why
    assert [each.count for each in load.read(place).ranks] == [12, 12]
