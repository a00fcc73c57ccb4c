"""The CPU time of steps, averaged over short ones."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest

from torchtriage.examine.run.job.watch import cpu

MS = 1_000_000


@pytest.mark.parametrize(
    ("every", "used", "told"),
    [
        pytest.param(200, itertools.count(0, 160), [160, 160, 160], id="long steps, each by itself"),
        pytest.param(40, [0, 0, 4, 8, 8, 12, 16], [0, 2, 2, 2, 2, 2], id="short steps, in thirds of what was read"),
    ],
)
def test_short_steps_are_averaged_until_the_ticks_of_the_clock_no_longer_show(
    every: int, used: Iterable[int], told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = list(itertools.islice(used, len(told) + 1))
    now = {"step": 0}
    monkeypatch.setattr(cpu, "_read", lambda: readings[now["step"]] * MS)
    monkeypatch.setattr(cpu, "perf_counter_ns", lambda: 0)
    clock = cpu.Work()

    def of(step: int) -> int:
        now["step"] = step
        return clock.of(step * every * MS) // MS

    assert [of(step + 1) for step in range(len(told))] == told


def test_what_a_long_first_step_took_is_not_told_of_the_short_ones_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    readings, waits = iter([0, 2000, 2004, 2008, 2040]), iter([0, 500, 520])
    monkeypatch.setattr(cpu, "_read", lambda: next(readings) * MS)
    monkeypatch.setattr(cpu, "_waited", lambda: next(waits) * MS)
    monkeypatch.setattr(cpu, "perf_counter_ns", lambda: 0)
    clock = cpu.Work()
    told = [(clock.of(ended * MS) // MS, clock.queued // MS) for ended in (2000, 2020, 2040, 2100)]
    assert told == [(2000, 500), (4, 0), (4, 0), (13, 6)]


@pytest.mark.parametrize(
    ("took", "waited", "asking", "told"),
    [
        pytest.param([5, 5], [0, 0], [0, 0], [5, 5], id="neither waits"),
        pytest.param([20, 20], [15, 15], [0, 0], [5, 5], id="the thread waits for a CPU"),
        pytest.param([20, 5], [0, 0], [15, 0], [5, 5], id="who asks waits for a CPU"),
        pytest.param([80, 5], [0, 0], [0, 0], [80, 5], id="who asks is kept by the thread"),
        pytest.param([5, 20], [0, 25], [0, 0], [5, 0], id="a wait is known once it has ended"),
        pytest.param([5, 20, 20], [0, 25, 0], [0, 0, 0], [5, 0, 15], id="and its rest is taken off later"),
    ],
)
def test_what_a_thread_did_is_told_without_waits_for_a_cpu(
    took: list[int], waited: list[int], asking: list[int], told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0, *itertools.accumulate(took)])
    waits = {7: iter([0, *itertools.accumulate(waited)]), 0: iter([0, *itertools.accumulate(asking)])}
    monkeypatch.setattr(cpu, "_waited", lambda thread=0: next(waits[thread]) * MS)
    monkeypatch.setattr(cpu, "perf_counter_ns", lambda: next(times) * MS)
    ran = cpu.Ran(7)
    assert [ran.since(5 * MS) // MS for _ in took] == told
