"""The script that checks a launch: right alone and with two distributed ranks, and told why when a rank is missing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchtriage.interface.skillpack.pack import skills

pytest.importorskip("torch")
SCRIPT = skills()["distributed-training-strategies"] / "scripts/comm_check.py"
LAUNCHERS = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
RIGHT = ("all_reduce sums", "broadcast reaches", "all_gather keeps", "every rank has a device", "other hosts reach")


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
    assert "all_reduce over 1 ranks" in out


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
    table = [line.split() for line in out.splitlines() if line.endswith("  ok")]
    assert [" ".join(row[:2]) for row in table] == ["1 KiB", "4 KiB", "16 KiB", "64 KiB"]
    for row in table:
        size, took, speed, links = (float(row[at]) for at in (0, 2, 4, 6))
        at_most, at_least = (size * 1024 / (took + off) / 1e6 for off in (-0.0005, 0.0005))
        assert at_least - 0.0005 <= speed == links <= at_most + 0.0005


@pytest.fixture
def module() -> Any:
    spec = importlib.util.spec_from_file_location("comm_check", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(
    ("backend", "variable", "told"),
    [
        ("gloo", {"GLOO_SOCKET_IFNAME": "lo"}, ("lo", "127.0.0.1", "GLOO_SOCKET_IFNAME")),
        ("gloo", {"GLOO_SOCKET_IFNAME": "nothing7"}, ("nothing7", "no address", "GLOO_SOCKET_IFNAME")),
        ("nccl", {"NCCL_SOCKET_IFNAME": "=lo,eth1"}, ("lo", "127.0.0.1", "NCCL_SOCKET_IFNAME")),
        ("nccl", {}, ("chosen by NCCL", "", "NCCL_SOCKET_IFNAME is not set")),
        ("gloo", {}, ("lo", "127.0.0.1", "the host's name")),
    ],
)
def test_the_interface_is_told_with_what_decides_it(
    module: Any, backend: str, variable: dict[str, str], told: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in module.INTERFACES.values():
        monkeypatch.delenv(name, raising=False)
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(module.socket, "gethostbyname", lambda _: "127.0.0.1")

    assert module.interface(backend) == told


def test_a_name_that_does_not_resolve_is_told(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_name: str) -> str:
        raise OSError

    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    monkeypatch.setattr(module.socket, "gethostbyname", refuse)
    assert module.interface("gloo") == ("unknown", "", "the host's name does not resolve")
    assert module.store("tcp://nowhere:1") == "nowhere does not resolve"
    assert module.store("file:///shared/new") == "file:///shared/new"


@pytest.mark.parametrize(
    ("places", "right"),
    [
        ([("a", "127.0.0.1"), ("a", "127.0.0.1")], True),
        ([("a", "10.0.0.1"), ("b", "10.0.0.2")], True),
        ([("a", "10.0.0.1"), ("b", "127.0.1.1")], False),
    ],
)
def test_a_loopback_address_is_wrong_once_there_are_two_hosts(
    module: Any, places: list[tuple[str, str]], right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gather(into: list[Any], _own: Any) -> None:
        into[:] = places

    monkeypatch.setattr(module.dist, "get_world_size", lambda: len(places))
    monkeypatch.setattr(module.dist, "all_gather_object", gather)
    assert module.reachable(places[0][1]) is right


def test_a_distributed_rank_that_never_comes_is_told() -> None:
    given = ["--init", "tcp://localhost:0", "--world-size", "2", "--timeout", "1"]
    code, out, err = ended(started([str(SCRIPT), "--backend", "gloo", *given]))
    assert (code, out) == (1, "")
    assert "no group by tcp://localhost:0" in err
    assert "1/2 clients joined" in err
    assert "is the port open" in err
