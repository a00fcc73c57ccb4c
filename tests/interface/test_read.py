"""`torchtriage read`: files of one kind or many, folders, archives and URLs end in one case."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import artefacts
import msgspec
import pytest
from traced.jobs import Job, Plan, made
from traced.simulated import MS

import torchtriage

REAL = Path(__file__).parents[1] / "cases/artefacts"
STEP = {"kind": "step", "step": 0, "boundary": "optimizer", "seconds": 0.1}


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """What a job left: the folder of a run beside a checkpoint."""
    (tmp_path / "left/run").mkdir(parents=True)
    (tmp_path / "left/run/rank0.jsonl").write_text(f"{json.dumps(STEP)}\n")
    (tmp_path / "left/model.pt").write_bytes(artefacts.CHECKPOINT)
    return tmp_path / "left"


def test_mixed_kinds_end_in_one_case(call: Any, left: Path) -> None:
    told = json.loads(call("read", str(left), "--json", "--exit-zero").out)
    assert told["measurements"]["steps"] == 1
    assert [item["why"] for item in told["inconclusive"] if item["detector"] == "checkpoint/read"] == [
        f"{left}/model.pt: it holds no tensors: no checkpoint"
    ]


def test_what_python_reads_is_what_the_command_prints(call: Any, left: Path) -> None:
    case = torchtriage.read([left / "run", left / "model.pt"])
    printed = call("read", str(left / "run"), str(left / "model.pt"), "--json").out
    assert json.loads(printed)["outcomes"] == case.as_dict()["outcomes"]


def test_a_second_run_is_left_out_and_named(left: Path) -> None:
    (left / "run2").mkdir()
    (left / "run2/rank0.jsonl").write_text(f"{json.dumps(STEP)}\n" * 2)
    told = [item.why for item in torchtriage.read([left]).inconclusive if item.detector == "read"]
    assert told == [f"{left}/run2: left out, since a case is about one run, here {left}/run"]


def test_only_what_cannot_be_examined_ends_with_three(call: Any, tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(bytes(range(256)))
    said = call("read", "x.bin")
    assert said.code == 3
    assert "it begins with '\\x00\\x01" in said.err
    assert "profiler traces" in said.err
    assert call("read").code == 2


def test_a_url_is_read_on_the_command_line(call: Any) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/job/rank0.log", b"IndexError: index out of range in self\n")
    told = json.loads(call("read", "memory://job", "--json", "--exit-zero").out)
    assert [each["fault"] for each in told["findings"]] == ["index-out-of-range"]
    assert told["findings"][0]["evidence"][0]["place"]["path"] == "memory:///job/rank0.log"
    assert call("read", "memory://nowhere").code == 2


def test_logs_of_all_ranks_dumps_and_curves_end_in_one_case(call: Any) -> None:
    told = json.loads(call("read", str(REAL), "--json", "--exit-zero").out)
    assert {"trace", "flight", "logs", "curves"} <= set(told["measurements"])
    assert {"shape-mismatch", "collective-on-some-ranks", "input-bound"} <= {each["fault"] for each in told["findings"]}


def test_no_torch_and_no_numpy_is_loaded_to_read_a_log() -> None:
    code = f"from torchtriage import read; read([{str(REAL / 'error.log')!r}]); import sys"
    code += "; print(*[name for name in ('torch', 'numpy', 'fsspec', 'rich') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(("name", "drawn"), [("diverges.csv", ["loss", "grad_norm"]), ("nan.log", ["loss"])])
def test_the_report_draws_the_curves_that_were_read(name: str, drawn: list[str], call: Any) -> None:
    told = json.loads(call("read", str(REAL / name), "--json", "--exit-zero").out)["measurements"]
    assert [series for series in ("loss", "grad_norm", "scale") if len(told.get(series, ())) > 5] == drawn
    page = call("read", str(REAL / name), "--format", "html", "--exit-zero").out
    assert all(f'"id":"{series}"' in page.replace(" ", "") for series in drawn)


def test_a_reader_that_fails_takes_no_other_kinds_findings_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("torchtriage.examine.artefact.curves.read", fails)
    case = torchtriage.read([REAL / "healthy.csv", REAL / "error.log"])
    assert [finding.fault.slug for finding in case.findings] == ["shape-mismatch"]
    assert any("reading failed: ZeroDivisionError" in item.why for item in case.inconclusive)


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    """The traces of four ranks, of which the third is late, and one that ends whoever reads it."""
    made(Job("late", Plan(late=2, more=80 * MS, phase="input"), 4, 1, frozenset(), frozenset(), steps=4), tmp_path)
    return tmp_path


def cases(folder: Path, *engines: str) -> list[bytes]:
    return [msgspec.json.encode(torchtriage.read([folder], engine=engine)) for engine in engines]


def test_one_process_several_and_ray_give_the_same_case_to_the_byte(ranks: Path) -> None:
    (ranks / "rank4.json").write_text('{"traceEvents": 3}')
    (ranks / "rank5.json").write_bytes((ranks / "rank0.json").read_bytes()[:4000])
    engines = ["local", *(["ray"] if find_spec("ray") else [])]
    one, auto, *others = cases(ranks, "one", "auto", *engines)
    assert "straggler" in one.decode()
    assert [auto, *others] == [one] * (1 + len(engines))


def test_a_trace_that_ends_its_reader_leaves_a_case_that_is_named_partial(
    ranks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ranks / "dies.json").write_bytes((ranks / "rank0.json").read_bytes())
    monkeypatch.setattr("torchtriage.examine.artefact.trace.SUMMED", "works:summary")
    case = torchtriage.read([ranks], engine="local")
    assert [finding.fault.slug for finding in case.findings if finding.fault.slug == "straggler"]
    (why,) = [item.why for item in case.inconclusive if item.why.startswith("partial")]
    assert "partial: 1 of 5 traces were not read, and the rest is judged without them" in why
    assert f"{ranks}/dies.json" in why


def test_the_engine_is_an_option(call: Any, ranks: Path) -> None:
    one, local = (call("read", str(ranks), "--json", "--engine", engine) for engine in ("one", "local"))
    assert one.code == local.code == 1
    assert json.loads(one.out)["outcomes"] == json.loads(local.out)["outcomes"]
    assert "an address is for the engine ray" in call("read", str(ranks), "--address", "10.0.0.1:6379").err
    assert call("read", str(ranks), "--engine", "spark").code == 2


def test_without_ray_its_engine_says_how_to_get_it(call: Any, ranks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchtriage.examine.artefact.engines.cluster.find_spec", lambda _: None)
    said = call("read", str(ranks), "--engine", "ray")
    assert said.code == 2
    assert 'pip install "torchtriage[ray]"' in said.err.replace("\n", " ").replace("  ", " ")


def test_what_was_read_is_kept_as_a_case_and_a_report(call: Any, tmp_path: Path) -> None:
    said = call("read", str(REAL / "input.json.gz"), "--json", "--out", "kept/here", "--exit-zero")
    case = tmp_path / "kept/here/case.json"
    assert case.read_text() == said.out
    assert "written: kept/here/report.html" in said.err
    assert "Where the time of each step goes" in (tmp_path / "kept/here/report.html").read_text()
    assert call("report", "kept/here", "--format", "html").out == (tmp_path / "kept/here/report.html").read_text()


def test_a_folder_that_cannot_be_made_is_named(call: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = call("read", str(REAL / "input.json.gz"), "--out", "file/below")
    assert said.code == 2
    assert "file/below" in said.err


def test_what_is_far_away_is_told_in_the_order_of_its_names(call: Any, ranks: Path) -> None:
    import fsspec

    for path in sorted(ranks.iterdir()):
        fsspec.filesystem("memory").pipe(f"/far/{path.name}", path.read_bytes())
    told = json.loads(call("read", "memory://far", "--json", "--exit-zero").out)
    assert [each["path"] for each in told["measurements"]["trace"]["ranks"]] == [
        f"memory:///far/rank{number}.json" for number in range(4)
    ]


@pytest.mark.parametrize(
    ("host", "number"), [("node0", 10**30), ("node\ud800", 7), ("node\udcff", 2**64 - 1)], ids=["long", "half", "byte"]
)
def test_what_no_message_can_hold_is_the_same_from_every_engine(tmp_path: Path, host: str, number: int) -> None:
    told = {"Collective name": "allreduce", "Seq": number, "In msg nelems": number, "Process Group Name": host}
    event = {"ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{host}", "tid": 7, "ts": 1, "dur": 5, "args": told}
    trace = {"distributedInfo": {"rank": 0, "world_size": 2}, "host_name": host, "traceEvents": [event]}
    for rank in range(2):
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))
    one, local = cases(tmp_path, "one", "local")
    assert one == local
    assert b"reading failed" not in one
