from __future__ import annotations

from math import inf, nan

import pytest

from torchtriage.core.evidence import Evidence, Place
from torchtriage.report.figure import figure, measured


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.412, "s", "412 ms"),
        (1.5, "seconds", "1.5 s"),
        (0.0000123, "s", "12.3 µs"),
        (0, "s", "0 s"),
        (3.2 * 2**30, "bytes", "3.2 GiB"),
        (1000, "B", "1000 B"),
        (-2048, "bytes", "-2 KiB"),
        (10 * 1024, "bytes per step", "10 KiB per step"),
        (2.5 * 2**20, "bytes/step", "2.5 MiB/step"),
        (0.62, "share", "62.0 %"),
        (0.62, "share of the step", "62.0 % of the step"),
        (0.62, "of the step", "62.0 % of the step"),
        (1.5e-5, None, "1.5e-05"),
        (65536, None, "65536"),
        (12, "steps", "12 steps"),
        (1234.56, "steps", "1235 steps"),
        (nan, "s", "nan s"),
        (-inf, None, "-inf"),
    ],
)
def test_a_figure_is_said_in_three_digits_and_the_unit_that_fits(value: float, unit: str | None, shown: str) -> None:
    assert figure(value, unit) == shown


@pytest.mark.parametrize(
    ("value", "unit", "spread", "shown"),
    [
        (None, "share", None, ""),
        (0.62, "share", None, "62.0 %"),
        (0.62, "share", (0.58, 0.66), "62.0 % (58.0 % to 66.0 %)"),
        (0.62, "share", (0.62, 0.62), "62.0 %"),
        (0.62, "of the step", (0.58, 0.66), "62.0 % of the step (58.0 % to 66.0 %)"),
        (10240, "bytes per step", (9216, 11264), "10 KiB per step (9 KiB to 11 KiB)"),
        (3, "steps", (2, 4), "3 steps (2 steps to 4 steps)"),
    ],
)
def test_a_measure_comes_with_its_interval(
    value: float | None, unit: str, spread: tuple[float, float] | None, shown: str
) -> None:
    assert measured(Evidence("run/x", Place(), "a fact", value, unit, spread)) == shown
