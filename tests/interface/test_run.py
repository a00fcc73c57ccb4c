from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_the_job_keeps_its_streams_and_leaves_a_case_and_a_report(call: Any, job: Path) -> None:
    said = call("run", "--out", "kept", "--", "job.py")
    assert said.code == 0
    assert said.out == "job said this\n"
    assert "job warned of that" in said.err
    assert "Verdict" in said.err
    assert said.err.endswith("written: kept/case.json\nwritten: kept/report.html\n")
    assert json.loads(Path("kept/case.json").read_text())["kind"] == "case"
    assert Path("kept/report.html").read_text().startswith("<!doctype html>")


def test_with_json_the_case_goes_to_stdout_and_the_jobs_words_to_stderr(call: Any, job: Path) -> None:
    said = call("run", "--json", "--out", "kept", "job.py")
    assert said.out == Path("kept/case.json").read_text()
    assert "job said this" in said.err


@pytest.mark.parametrize(("how", "code"), [("0", 0), ("3", 3), ("kill", 137)])
def test_the_code_is_the_jobs_own(how: str, code: int, call: Any, job: Path) -> None:
    assert call("run", "--fail-on", "warning", "--", "job.py", how).code == code


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGSEGV"])
def test_who_waits_for_a_job_that_a_signal_ends_sees_that_signal(
    name: str, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(job.parent)
    job.write_text(f"import os, signal\nos.kill(os.getpid(), signal.{name})\n")
    words = [sys.executable, "-m", "torchtriage", "run", "--out", "kept", "--", sys.executable, "job.py"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == -getattr(signal, name)
    assert ended.stderr.endswith("written: kept/case.json\nwritten: kept/report.html\n")


@pytest.mark.parametrize(("words", "share"), [(["--overhead", "0.5%"], "0.005"), (["--overhead=2"], "0.02"), ([], "")])
def test_the_job_is_told_how_much_the_probes_may_cost(words: list[str], share: str, call: Any, job: Path) -> None:
    job.write_text("import os\nprint(os.environ.get('TORCHTRIAGE_BUDGET', ''))\n")
    assert call("run", *words, "--", "job.py").out == f"{share}\n"


@pytest.mark.parametrize(
    ("share", "says"), [("0", "not between"), ("101%", "not between"), ("little", "not a percentage")]
)
def test_a_cost_that_cannot_be_is_refused(share: str, says: str, call: Any, job: Path) -> None:
    said = call("run", "--overhead", share, "--", "job.py")
    assert said.code == 2
    assert says in said.err
    assert said.out == ""


def test_runs_get_folders_of_their_own(call: Any, job: Path) -> None:
    for _ in range(2):
        call("run", "job.py")
    assert len(list(Path("torchtriage-runs").glob("*/case.json"))) == 2


@pytest.mark.parametrize(("words", "code"), [(["nowhere.py"], 3), (["no-such-command"], 3), ([], 2)])
def test_a_job_that_cannot_start_is_told_and_leaves_no_folder(words: list[str], code: int, call: Any) -> None:
    said = call("run", "--", *words)
    assert said.code == code
    assert "Traceback" not in said.err
    assert not list(Path().glob("torchtriage-runs/*"))


def test_a_report_that_cannot_be_written_costs_neither_the_words_nor_the_code(call: Any, job: Path) -> None:
    job.write_text(job.read_text().replace("sys.exit(", "os.makedirs('kept/report.html/in-the-way'); sys.exit("))
    said = call("run", "--out", "kept", "--", "job.py", "4")
    assert said.code == 4
    assert "Verdict" in said.err
    assert "written: kept/case.json\n" in said.err
    assert "not written: kept/report.html: " in said.err
    assert not list(Path("kept").glob(".*.tmp"))


@pytest.mark.parametrize(
    ("options", "redirection"),
    [("", "2>&-"), ("", "2>/dev/full"), ("--json", ">&-"), ("--json", ">/dev/full")],
    ids=["stderr closed", "stderr full", "stdout closed", "stdout full"],
)
def test_a_stream_that_takes_nothing_costs_neither_the_case_nor_the_code(
    options: str, redirection: str, job: Path
) -> None:
    job.write_text("raise SystemExit(5)\n")
    command = f"{sys.executable} -m torchtriage run {options} --out kept -- {sys.executable} job.py {redirection}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, cwd=job.parent)
    assert done.returncode == 5
    assert b"Traceback" not in done.stdout + done.stderr
    assert {"case.json", "report.html"} <= {path.name for path in (job.parent / "kept").iterdir()}


def test_an_answer_that_cannot_be_written_is_a_clear_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m torchtriage ask nan >/dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "torchtriage: the answer cannot be written: No space left on device\n  where: stdout\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_symptom_opens_the_plan_that_the_case_carries(call: Any, job: Path) -> None:
    call("run", "--symptom", "the loss becomes NaN", "--out", "kept", "job.py")
    case = json.loads(Path("kept/case.json").read_text())
    assert case["query"]["text"] == "the loss becomes NaN"
    assert case["route"]["steps"][0]["specialist"] == "debugging-techniques"


def test_a_run_is_judged_read_and_rendered_again(call: Any, training: Path) -> None:
    ended = call("run", "--symptom", "the loss becomes NaN", "--out", "kept", "--fail-on", "error", "training.py")
    again = call("read", "kept", "--json")
    assert "gradients-not-zeroed" in ended.err
    assert ended.code == again.code == 1
    assert call("read", "kept", "--exit-zero").code == 0
    assert json.loads(again.out) == json.loads(Path("kept/case.json").read_text())
    for case in ("kept", "kept/case.json"):
        assert call("report", case, "--format", "html").out == Path("kept/report.html").read_text()
        assert call("report", case, "--format", "json").out == again.out


@pytest.mark.parametrize(("path", "code"), [("nowhere", 2), (".", 3), ("job.py", 3)])
def test_what_this_version_cannot_read_is_named(path: str, code: int, call: Any, job: Path) -> None:
    said = call("read", path)
    assert said.code == code
    assert "run" in said.err


@pytest.mark.parametrize("content", ["", "{}", '{"kind": "case", "schema": 99}', "[1]", "\x00"])
def test_a_file_that_is_no_case_is_refused_in_words(content: str, call: Any, tmp_path: Path) -> None:
    (tmp_path / "case.json").write_text(content)
    said = call("report", "case.json")
    assert said.code == 3
    assert said.out == ""
    assert "  where: case.json\n" in said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--card", "H100"], "--card needs --accelerator sim"),
        (["--accelerator", "sim", "--card", "G7"], "neither a size of memory, such as 24GiB, nor one of T4"),
        (["--accelerator", "warp"], "'warp' is not"),
    ],
)
def test_a_card_that_cannot_be_simulated_is_refused(words: list[str], says: str, call: Any, job: Path) -> None:
    said = call("run", *words, "--", "job.py")
    assert said.code == 2
    assert says in said.err
    assert said.out == ""


def test_the_job_is_told_which_card_is_simulated(call: Any, job: Path) -> None:
    job.write_text(
        "import os\nprint(os.environ['TORCHTRIAGE_ACCELERATOR'], os.environ['CUDA_VISIBLE_DEVICES'] == '')\n"
    )
    said = call("run", "--accelerator", "sim", "--card", "2xT4", "--", "job.py")
    row, is_hidden = said.out.rsplit(" ", 1)
    assert json.loads(row)["count"] == 2
    assert is_hidden == "True\n"
