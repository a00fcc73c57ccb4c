from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from torchtriage.interface.cli import VERBS

HEAVY = {"rich", "jinja2", "plotly", "numpy", "torch", "fsspec", "torchtriage.examine", "torchtriage.diagnose"}


def python(*words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, *words], capture_output=True, timeout=120, check=False, **more)


@pytest.mark.parametrize("words", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)])
def test_help_and_version_end_with_0(words: list[str], call: Any) -> None:
    said = call(*words)
    assert said.code == 0
    assert said.out


@pytest.mark.parametrize(
    "words", [["no-such-verb"], ["ask", "--no-such-option", "x"], ["ask", "x", "--batch"], ["check"], ["run"]]
)
def test_wrong_usage_ends_with_2(words: list[str], call: Any) -> None:
    said = call(*words)
    assert said.code == 2
    assert said.out == ""
    assert said.err.startswith("Usage: ")


def test_a_problem_is_told_in_three_parts(call: Any) -> None:
    what, where, do = call("check", "nowhere.py").err.splitlines()
    assert what.startswith("torchtriage: ")
    assert where == "  where: nowhere.py"
    assert do.startswith("  do:    ")


def test_a_cold_ask_loads_no_engine() -> None:
    script = (
        "import sys\n"
        "from torchtriage.interface.cli import main\n"
        "try:\n"
        "    main(['ask', 'the loss is NaN'])\n"
        "except SystemExit:\n"
        f"    print(sorted({HEAVY!r} & sys.modules.keys()), file=sys.stderr)\n"
    )
    python("-c", script)  # the first call of an installation compiles its tables
    assert python("-c", script).stderr == b"[]\n"


def test_importing_the_package_loads_next_to_nothing() -> None:
    script = "import sys, torchtriage; print([name for name in ('click', 'msgspec', 'rich') if name in sys.modules])"
    assert python("-c", script).stdout == b"[]\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with open(theirs, "wb") as closed:  # noqa: PTH123 - a descriptor, not a path
        ended = subprocess.run(
            [sys.executable, "-m", "torchtriage", "ask", "the loss is NaN", "--json"],
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
            timeout=120,
        )
    assert ended.stderr == b""
    assert ended.returncode == 141


@pytest.mark.parametrize(("raised", "code"), [("KeyboardInterrupt", 130), ("EOFError", 130)])
def test_an_interrupt_ends_with_130_and_without_a_traceback(raised: str, code: int) -> None:
    script = (
        "import sys\n"
        "class Interrupted:\n"
        "    @property\n"
        "    def buffer(self):\n"
        f"        raise {raised}\n"
        "sys.stdin = Interrupted()\n"
        "from torchtriage.interface.cli import main\n"
        "main(['ask', '-'])\n"
    )
    ended = python("-c", script)
    assert ended.returncode == code
    assert ended.stderr.split() == [b"torchtriage:", b"interrupted"]


@pytest.mark.parametrize(
    ("settings", "words", "colored"),
    [
        ({}, [], False),
        ({"FORCE_COLOR": "1"}, [], True),
        ({"CLICOLOR_FORCE": "1"}, [], True),
        ({"CLICOLOR_FORCE": "0"}, [], False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, [], False),
        ({"NO_COLOR": "1"}, ["--color", "always"], True),
        ({"FORCE_COLOR": "1"}, ["--color", "never"], False),
    ],
)
@pytest.mark.parametrize("verb", [["ask", "the loss is NaN"], ["check", "faulty.py"], ["explain", "not-learning"]])
def test_colours_follow_the_option_then_the_environment(  # noqa: PLR0917 - three of them are fixtures
    verb: list[str],
    settings: dict[str, str],
    words: list[str],
    colored: bool,
    call: Any,
    faulty: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in call(*verb, *words).out) is colored


def test_a_terminal_that_knows_only_ascii_gets_the_report_all_the_same(faulty: Path) -> None:
    settings = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    for form in ("full", "json", "sarif"):
        ended = python("-m", "torchtriage", "check", str(faulty), "--format", form, env=settings)
        assert ended.returncode == 1
        assert b"Traceback" not in ended.stderr


def test_the_same_call_gives_the_same_bytes_whatever_the_hash_seed(faulty: Path) -> None:
    said = {
        python("-m", "torchtriage", "check", faulty.name, "--format", "sarif", cwd=faulty.parent, env=seeded).stdout
        for seeded in ({**os.environ, "PYTHONHASHSEED": seed} for seed in ("0", "1"))
    }
    assert len(said) == 1
