from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from torchtriage.examine.run.launcher.live import Line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def of_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def append(folder: Path, *events: dict[str, Any], tail: str = "") -> None:
    with (folder / "rank0.jsonl").open("a") as file:
        file.write("".join(json.dumps(event) + "\n" for event in events) + tail)


def step(number: int) -> dict[str, Any]:
    return {"kind": "step", "step": number, "seconds": 0.5}


def test_the_line_tells_step_rate_and_what_was_seen(tmp_path: Path) -> None:
    line = Line(tmp_path, terminal := Terminal())
    append(tmp_path, {"kind": "start"}, step(0), step(1), {"kind": "non-finite"}, {"kind": "non-finite"})
    line.draw()

    assert terminal.getvalue() == "torchtriage: step 1 · 2 it/s · non-finite 2\r"


def test_the_line_covers_the_one_before_and_goes_away_at_the_end(tmp_path: Path) -> None:
    line = Line(tmp_path, terminal := Terminal())
    append(tmp_path, step(100000))
    line.draw()
    width = len(terminal.getvalue()) - 1
    line.step, line.seconds = 1, []
    line.draw()
    line.clear()

    _, second, third, _ = terminal.getvalue().split("\r")
    assert len(second) == width
    assert third == " " * len(second.rstrip())


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    line = Line(tmp_path, Terminal())
    whole = json.dumps(step(7))
    append(tmp_path, step(6), tail=whole[:10])
    line.read()
    assert line.step == 6

    append(tmp_path, tail=whole[10:] + "\n")
    line.read()
    assert line.step == 7


def test_the_line_fits_the_terminal_and_has_no_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    line = Line(tmp_path, terminal := Terminal())
    append(tmp_path, step(1), {"kind": "evil\x1b[2J\n\rkind" + "x" * 100})
    line.draw()

    assert len(terminal.getvalue()) <= 30
    assert "\x1b" not in terminal.getvalue()
    assert terminal.getvalue().count("\r") == 1


def test_nothing_is_drawn_before_the_first_step_or_where_there_is_no_terminal(tmp_path: Path) -> None:
    line = Line(tmp_path, terminal := Terminal())
    line.draw()
    line.clear()

    assert terminal.getvalue() == ""
    assert Line(tmp_path, io.StringIO()).every is None


def test_a_terminal_that_goes_away_is_no_trouble(tmp_path: Path) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    line = Line(tmp_path, Gone())
    append(tmp_path, step(1))
    line.draw()

    assert line.every is None


@pytest.mark.parametrize("text", ["garbage\n", "[]\n", '{"kind":"step"}\n', '{"kind":"step","step":"x","seconds":1}\n'])
def test_lines_that_are_no_events_are_passed_over(tmp_path: Path, text: str) -> None:
    append(tmp_path, step(3), tail=text)
    line = Line(tmp_path, Terminal())
    line.read()

    assert line.step == 3
