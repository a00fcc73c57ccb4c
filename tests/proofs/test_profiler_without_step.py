"""Without step() a schedule hands out no trace."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "traces"), [("Bad", 0), ("Good", 1)])
def test_on_trace_ready_is_called_once_for_each_cycle_of_steps(shown, section: str, traces: int) -> None:
    ready: list[int] = []

    def on_ready(prof: torch.profiler.profile) -> None:
        ready.append(sum(event.key == "aten::mm" for event in prof.key_averages()))

    shown("profiler-without-step", section).measure(lambda: torch.ones(2, 2) @ torch.ones(2, 2), on_ready)
    assert ready == [1] * traces
