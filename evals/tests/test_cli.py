"""torchtriage-eval as it is called."""

from __future__ import annotations

import ast
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import torchtriage
import torchtriage_evals
from torchtriage_evals import cli, run, scripted, store
from torchtriage_evals.source import Source

SOURCE = Path(torchtriage_evals.__file__).parent
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(source: Source, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Calls the command in an empty folder, on the small scenarios; gives its code, stdout and stderr."""
    monkeypatch.setattr(store, "scenarios", lambda: source.scenarios)
    monkeypatch.setattr(store, "labelled", lambda: source.labelled)
    monkeypatch.setattr(store, "ARTEFACTS", source.artefacts)
    monkeypatch.chdir(tmp_path)

    def called(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(args)
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return called


def test_compare_ends_with_a_full_report(call: Call, tmp_path: Path) -> None:
    code, out, err = call("compare", "--model", "mockllm/perfect", "--date", "2026-11-23")
    assert code == 0
    assert out.startswith("GREEN less RED: +0.00")
    assert "! Simulated" in out
    folder = tmp_path / "torchtriage-eval-runs/compare-mockllm-perfect"
    assert f"Written: {folder.relative_to(tmp_path) / 'report.html'}" in err
    assert {path.name for path in folder.iterdir()} == {"report.json", "report.html", "trials.jsonl", "logs"}
    written = json.loads((folder / "report.json").read_text())
    assert written["about"] == written["about"] | {
        "simulated": True,
        "date": "2026-11-23",
        "model": "mockllm/perfect",
        "judge": "mockllm/judge",
        "verb": "compare",
        "scenarios": 9,
    }
    assert {group["arm"]: group["score"] for group in written["results"]["groups"]} == {
        "red": 1,
        "placebo": 1,
        "green": 1,
    }


def test_nothing_is_written_over(call: Call, tmp_path: Path) -> None:
    for _ in range(2):
        assert call("red", "--model", "mockllm/empty", "--limit", "1")[0] == 0
    assert {path.name for path in (tmp_path / "torchtriage-eval-runs").iterdir()} == {
        "red-mockllm-empty",
        "red-mockllm-empty-2",
    }
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("x")
    code, _, err = call("red", "--model", "mockllm/empty", "--out", "full")
    assert code == 2
    assert "there is something in it already" in err


@pytest.mark.parametrize("verb", ["placebo", "green", "offered"])
def test_every_arm_is_a_verb(call: Call, verb: str) -> None:
    code, out, _ = call(verb, "--model", "mockllm/perfect", "--json")
    assert code == 0
    groups = json.loads(out)["results"]["groups"]
    assert [(group["arm"], group["score"]) for group in groups] == [(verb, 1.0)]


def test_the_arm_of_tools_is_a_verb(call: Call) -> None:
    code, out, _ = call("tools", "--model", "mockllm/perfect", "--json", "--limit", "1")
    assert code == 0
    assert [group["arm"] for group in json.loads(out)["results"]["groups"]] == ["tools"]


def test_pressure_pairs_calm_and_pressed(call: Call) -> None:
    code, out, _ = call("pressure", "--model", "mockllm/perfect", "--json", "--pressure", "time", "--kind", "route")
    assert code == 0
    compared = {(each["before"], each["after"]) for each in json.loads(out)["results"]["comparisons"]}
    assert ("green", "green, pressed") in compared
    assert ("red, pressed", "green, pressed") in compared


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--model", "mockllm/genius"), "there is no such script"),
        (("--model", "mockllm/perfect", "--judge", "mockllm/solomon"), "there is no such script"),
        (("--model", "nobody/model"), "no such model"),
        (("--model", "mockllm/perfect", "--judge", "nobody/model"), "no such model"),
        (("--model", "mockllm/perfect", "--cost-limit", "1"), "the price of mockllm/perfect is not known"),
        (
            ("--model", "mockllm/perfect", "--cost-limit", "1", "--price", "1,1"),
            "the price of mockllm/judge is not known",
        ),
        (("--model", "mockllm/perfect", "--price", "cheap"), "'cheap' is no price"),
        (("--model", "mockllm/perfect", "--price", "-1,nan"), "is no price"),
        (("--model", "mockllm/perfect", "--kind", "odd"), "Invalid value"),
        ((), "Missing option '--model'"),
    ],
)
def test_mistakes_are_told_before_anything_runs(call: Call, tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    code, out, err = call("compare", *args)
    assert (code, out) == (2, "")
    assert said in err
    assert not (tmp_path / "torchtriage-eval-runs").exists()


def test_a_cost_limit_is_kept_and_told(call: Call) -> None:
    prices = ("--price", "1000,1000", "--judge-price", "0,0")
    code, out, _ = call("red", "--model", "mockllm/perfect", "--cost-limit", "0.2", *prices, "--json")
    results = json.loads(out)["results"]
    assert code == 0
    assert results["stopped"] == "the cost limit was reached"
    assert 0 < results["trials"] < results["planned"]
    assert results["spent"]["dollars"] < 0.2 + 2 * 0.3


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_with_a_partial_report_that_says_so(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    perfect, calls = scripted.perfect, iter(range(100))

    def interrupted(scenario: Any) -> str:
        if next(calls) == 6:
            signal.raise_signal(signal.SIGINT)
        return perfect(scenario)

    monkeypatch.setattr(scripted, "perfect", interrupted)
    monkeypatch.setattr(run, "AT_ONCE", 1)
    code, out, err = call("compare", "--model", "mockllm/perfect")
    assert code == 130
    assert "! Partial: it was interrupted after " in out
    assert "report.html" in err


def test_a_run_in_which_nothing_is_scored_ends_with_3(call: Call) -> None:
    code, out, _ = call(
        "red", "--model", "mockllm/perfect", "--judge", "mockllm/babble", "--kind", "advice", "--limit", "1"
    )
    assert (code, "The judge was not accepted" in out) == (0, True)  # a pattern has scored one point
    assert call("red", "--model", "mockllm/perfect", "--kind", "trigger")[0] == 3


def test_help_and_mistakes_wait_for_neither_inspect_nor_torch() -> None:
    code = "import sys, torchtriage_evals.cli as c; c._ended(['compare', '--help']); print(sorted({'inspect_ai', 'torch', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "--cost-limit" in done.stdout


@pytest.mark.parametrize("path", sorted(SOURCE.glob("*.py")), ids=lambda path: path.name)
def test_only_what_torchtriage_makes_public_is_imported(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    modules = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert {name for name in modules if name.startswith("torchtriage.")} <= {"torchtriage.toolkit"}
    drawn = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not [
        node.module
        for node in drawn
        if (node.module or "").startswith("torchtriage.") and node.module != "torchtriage.toolkit"
    ]
    names = {alias.name for node in drawn if node.module == "torchtriage" for alias in node.names}
    assert names <= {*torchtriage.__all__}
