"""torch.profiler sees the device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from torchtriage.simulation import Costs, Simulator


@pytest.fixture
def trace(simulator: Simulator, tmp_path: Path) -> tuple[profile, list[dict]]:
    simulator.costs = Costs.free(kernel=100_000, launch=1_000)
    layer, x = torch.nn.Linear(4, 4).to("sim"), torch.ones(2, 4).pin_memory()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.SIM]) as taken:
        for _ in range(3):
            layer(x.to("sim", non_blocking=True)).sum().backward()
        torch.accelerator.synchronize()
    taken.export_chrome_trace(str(tmp_path / "trace.json"))
    return taken, json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_profile_counts_the_time_of_the_device(trace: tuple[profile, list[dict]]) -> None:
    by_name = {each.key: each for each in trace[0].key_averages()}
    assert by_name["aten::addmm"].device_time_total == 300
    assert by_name["aten::linear"].self_device_time_total == 0


def test_a_trace_has_kernels_and_copies_beside_the_operators_that_asked_for_them(
    simulator: Simulator, trace: tuple[profile, list[dict]]
) -> None:
    device = [each for each in trace[1] if each.get("cat") in {"kernel", "gpu_memcpy"}]
    operators = {each["args"]["External id"]: each["name"] for each in trace[1] if each.get("cat") == "cpu_op"}
    asked = {(each["name"], operators[each["args"]["External id"]]) for each in device}
    assert {("addmm", "aten::addmm"), ("Memcpy HtoD (Pinned -> Device)", "aten::_copy_from")} <= asked
    assert [each["dur"] for each in device if each["name"] == "addmm"] == [100, 100, 100]
    assert all(each["args"]["device"] == 0 and each["args"]["stream"] == 0 for each in device)
