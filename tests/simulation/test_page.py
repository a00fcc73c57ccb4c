"""The page says what its example prints: on the clock of the device each run takes the same time."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from torchtriage.simulation import Simulator

PAGE = Path(__file__).parents[2] / "docs" / "simulation.md"


def test_the_example_of_the_page_prints_what_the_page_says(
    simulator: Simulator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    script, printed = (page.split(start, 1)[1].split("```", 1)[0] for start in ("```python\n", "$ python train.py\n"))
    path = tmp_path / "train.py"
    # the process of the tests has two devices, which torch gives to nobody else
    path.write_text(script.replace("simulation.start(", "simulation.start(devices=2, "), encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out == printed
