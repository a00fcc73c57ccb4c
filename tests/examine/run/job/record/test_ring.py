"""The last rows of something in a small file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchtriage.examine.run.job.record.ring import WIDTH, Ring


def rows(path: Path) -> list[str]:
    return [line.strip() for line in path.read_text().splitlines()]


def test_the_newest_row_takes_the_place_of_the_oldest_and_a_mark_is_made_in_it(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path / "ring"), 2)
    for number in (1, 2, 3):
        ring.put(number, f"row {number}")
    ring.mark(3, 0, b"R")

    assert rows(tmp_path / "ring") == ["row 2", "Row 3"]
    assert (tmp_path / "ring").stat().st_size == 2 * WIDTH


def test_a_row_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path / "ring"), 1)
    ring.put(0, "short")
    ring.put(0, "x" * WIDTH)

    assert rows(tmp_path / "ring") == ["short"]


def test_a_folder_that_is_gone_and_a_number_that_names_another_file_harm_nobody(tmp_path: Path) -> None:
    Ring(str(tmp_path / "none" / "ring"), 1).put(0, "row")
    ring, other = Ring(str(tmp_path / "ring"), 1), tmp_path / "other"
    number = ring._file
    assert number is not None
    with other.open("w") as file:
        os.dup2(file.fileno(), number)  # the job has taken the number
    ring.put(0, "row")
    ring.close()

    assert other.read_text() == ""
    os.close(number)
    ring.close()


def test_a_file_that_somebody_cuts_is_written_on(tmp_path: Path) -> None:
    ring = Ring(str(tmp_path / "ring"), 4)
    (tmp_path / "ring").write_bytes(b"")
    ring.put(3, "row")

    assert b"row" in (tmp_path / "ring").read_bytes()
    ring.close()


@pytest.mark.parametrize("number", [0, 5])
def test_after_it_was_closed_nothing_is_written(tmp_path: Path, number: int) -> None:
    ring = Ring(str(tmp_path / "ring"), 2)
    ring.close()
    ring.put(number, "row")

    assert rows(tmp_path / "ring") == ["", ""]
