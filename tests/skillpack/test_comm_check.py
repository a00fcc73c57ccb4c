"""The script that checks a launch: right alone and with two distributed ranks, and told why when a rank is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchtriage.interface.skillpack.pack import skills

pytest.importorskip("torch")
SCRIPT = skills()["distributed-training-strategies"] / "scripts/comm_check.py"
LAUNCHERS = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
RIGHT = ("all_reduce sums", "broadcast reaches", "all_gather keeps", "every rank has a device")


def started(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *command], stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def test_alone_it_makes_a_group_of_one() -> None:
    code, out, err = ended(started([str(SCRIPT), "--backend", "gloo", "--mib", "0.1"]))
    assert (code, err) == (0, "")
    assert "rank 0 of 1" in out
    assert [each for each in RIGHT if f"ok    {each}" not in out] == []


def test_two_distributed_ranks_meet_in_a_file(tmp_path: Path) -> None:
    given = [str(SCRIPT), "--backend", "gloo", "--init", (tmp_path / "store").as_uri(), "--world-size", "2"]
    answers = [ended(each) for each in [started([*given, "--rank", str(rank), "--mib", "0.1"]) for rank in (0, 1)]]
    assert [code for code, _, _ in answers] == [0, 0]
    assert [each for each in RIGHT if f"ok    {each}" not in answers[0][1]] == []
    assert "over 2 ranks" in answers[0][1]
    assert "ok" not in answers[1][1]


def test_torchrun_starts_it_by_the_environment() -> None:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    code, out, err = ended(started([*launch, str(SCRIPT), "--backend", "gloo", "--mib", "0.1"]))
    assert code == 0, err
    assert "LOCAL_RANK=1" in out
    assert "over 2 ranks" in out


def test_a_distributed_rank_that_never_comes_is_told() -> None:
    given = ["--init", "tcp://localhost:0", "--world-size", "2", "--timeout", "1"]
    code, out, err = ended(started([str(SCRIPT), "--backend", "gloo", *given]))
    assert (code, out) == (1, "")
    assert "no group by tcp://localhost:0" in err
    assert "1/2 clients joined" in err
    assert "is the port open" in err
