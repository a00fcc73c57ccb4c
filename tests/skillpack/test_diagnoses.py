"""What the programs of debugging and profiling tell: the planted fault, and nothing where none is planted."""

from __future__ import annotations

import gzip
import json
import runpy
import sys
from pathlib import Path

import pytest

from torchtriage.interface.skillpack.pack import skills

DEBUGGING = skills()["debugging-techniques"] / "scripts"
PROFILING = skills()["performance-profiling"] / "scripts"
WORK = [  # microseconds of one rank: category, name, start, length
    ("kernel", "gemm", 0, 10),
    ("kernel", "ncclDevKernel_AllReduce", 5, 20),
    ("kernel", "relu", 30, 10),
    ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 40, 10),
    ("cpu_op", "aten::item", 24, 7),
    ("cpu_op", "aten::_local_scalar_dense", 25, 6),
    ("user_annotation", "ProfilerStep#7", 0, 50),
]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], torch_as_it_was: None) -> Said:
    return Said(monkeypatch, capsys)


class Said:
    """Runs a program in this process; gives what it prints."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, program: Path, *arguments: str) -> str:
        self.monkeypatch.setattr(sys, "argv", [program.name, *arguments])
        runpy.run_path(str(program), run_name="__main__")
        return self.capsys.readouterr().out


def trace(path: Path) -> Path:
    events = [{"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": 1} for cat, name, ts, dur in WORK]
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    return path


def test_a_trace_tells_how_busy_the_device_is_and_what_it_waits_for(said: Said, tmp_path: Path) -> None:
    lines = said(PROFILING / "read_trace.py", str(trace(tmp_path / "rank0.json.gz"))).splitlines()
    assert lines == [
        "== rank0.json.gz",
        "0.05 ms, 1 steps",
        "device busy 90.0%, 3 kernels, median 10.0 us",
        "Memcpy HtoD: 0.010 ms",
        "collectives 40.0%, exposed 30.0%",
        "longest gaps of the device:",
        "     0.005 ms: aten::_local_scalar_dense",
        "operators on top, by their own time on the host:",
        "     0.006 ms: aten::_local_scalar_dense",
        "     0.001 ms: aten::item",
    ]


@pytest.mark.parametrize(
    ("plant", "told"),
    [
        ("root", "step 0: the gradient of 0.bias, after a forward pass that was finite"),
        ("batch", "step 20: the output of 0, whose inputs were not finite themselves"),
        ("none", "60 steps, all finite"),
    ],
)
def test_the_first_value_that_is_not_finite_is_placed(plant: str, told: str, said: Said) -> None:
    assert said(DEBUGGING / "first_nonfinite.py", "--plant", plant).startswith(told)


def test_a_rate_that_is_too_high_shows_in_norms_that_grow(said: Said) -> None:
    text = said(DEBUGGING / "first_nonfinite.py", "--plant", "rate")
    norms = [float(norm) for norm in text.splitlines()[1].partition(": ")[2].split(", ")]
    assert norms == sorted(norms)
    assert norms[-1] > 1000 * norms[0]


@pytest.mark.parametrize(
    ("plant", "slug"),
    [
        ("none", "by heart"),
        ("no-step", "step-missing"),
        ("zeroed-late", "step-missing"),
        ("detached", "loss-detached"),
        ("softmax", "softmax-before-cross-entropy"),
    ],
)
def test_one_batch_tells_which_link_is_broken(plant: str, slug: str, said: Said) -> None:
    assert slug in said(DEBUGGING / "overfit_one_batch.py", "--plant", plant).splitlines()[-1]


@pytest.mark.parametrize(("arguments", "told"), [((), "field 0[5, 2] is 100"), (("--sound",), "all in range")])
def test_an_id_beyond_its_table_is_refused_with_its_place(arguments: tuple[str, ...], told: str, said: Said) -> None:
    assert told in said(DEBUGGING / "check_ids.py", *arguments)


def test_a_step_that_failed_fails_again_from_its_file(said: Said) -> None:
    first = said(DEBUGGING / "replay_batch.py")
    again = said(DEBUGGING / "replay_batch.py", "--replay", first.split()[-1])
    assert "123" in again.splitlines()[0]
    assert again.splitlines()[-1] == "again: IndexError: index out of range in self"
