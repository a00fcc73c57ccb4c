"""Which processes stand still, by the list that they write to."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from torchtriage.examine.run.launcher import notes
from torchtriage.examine.run.launcher.notes import ASK, Notes

ME, PARENT = os.getpid(), os.getppid()
GONE = 2**22 + 1  # beyond the largest number that Linux gives a process


def write(path: Path, *kinds: tuple[str, int]) -> None:
    with path.open("a") as file:
        file.writelines(f"{json.dumps({'kind': kind, 'pid': process})}\n" for kind, process in kinds)


@pytest.mark.parametrize(
    ("kinds", "stands"),
    [
        ([], False),
        ([("watches", ME)], False),
        ([("watches", ME), ("hang", ME)], True),
        ([("hang", ME)], True),
        ([("watches", ME), ("watches", PARENT), ("hang", ME)], False),
        ([("watches", ME), ("watches", PARENT), ("hang", ME), ("hang", PARENT)], True),
        ([("watches", ME), ("watches", GONE), ("hang", ME)], True),
        ([("watches", GONE), ("hang", GONE)], False),
        ([("hang", ME), ("moved", ME)], False),
        ([("hang", ME), ("left", ME)], False),
        ([("watches", ME), ("hang", PARENT), ("left", ME)], True),
        ([("torch", ME), ("hang", 0)], False),
    ],
)
def test_a_job_stands_when_all_that_are_alive_do(tmp_path: Path, kinds: list[tuple[str, int]], stands: bool) -> None:
    path = tmp_path / "processes.jsonl"
    write(path, *kinds)
    assert Notes(path).stands == stands


def test_what_is_no_note_is_passed_over_and_half_a_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "processes.jsonl"
    path.write_text(f'[]\nno\n{{"kind":"hang"}}\n{{"kind":"hang","pid":"x"}}\n{{"kind":"hang","pid":{ME}}}')
    followed = Notes(path)
    assert not followed.stands

    with path.open("a") as file:
        file.write("\n")
    assert followed.stands


def test_ranks_are_asked_only_where_there_are_several_and_waited_for_until_they_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "processes.jsonl"
    write(path, ("watches", ME))
    Notes(path).ask()
    assert not (tmp_path / ASK).exists()

    write(path, ("watches", PARENT))
    monkeypatch.setattr(notes, "ANSWERS", 60.0)
    asked = threading.Event()

    def answer() -> None:
        while not (tmp_path / ASK).exists():
            asked.wait(0.01)
        write(path, ("looked", ME), ("looked", PARENT))

    other = threading.Thread(target=answer)
    other.start()
    Notes(path).ask()  # comes back
    other.join()
    monkeypatch.setattr(notes, "ANSWERS", 0.0)
    Notes(path).ask()  # and does not wait for ever
