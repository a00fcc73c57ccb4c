"""Kernels, streams, events and the host on one clock, to the nanosecond."""

from __future__ import annotations

import time

import pytest
import torch

from torchtriage import simulation
from torchtriage.simulation import Costs, Simulator

SIZE = (4, 4)


def ones(device: str = "sim") -> torch.Tensor:
    return torch.ones(SIZE).to(device)


def spans(simulator: Simulator) -> list[tuple[str, int, int]]:
    return [(kernel.name, kernel.start, kernel.end) for kernel in simulator.ledger.kernels]


def prepared(simulator: Simulator, **costs: object) -> torch.Tensor:
    """A tensor on the device, which costs and the clock do not know of."""
    made = ones()
    simulator.costs = Costs.free(**costs)
    simulator.reset()
    return made


def test_kernels_of_a_stream_follow_one_another(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000)
    x.relu().exp().relu()
    assert spans(simulator) == [("relu", 0, 1_000), ("exp", 1_000, 2_000), ("relu", 2_000, 3_000)]
    assert (simulator.now, simulator.busy_until()) == (0, 3_000)


def test_the_host_pays_for_launches_and_runs_ahead(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000, launch=10)
    for _ in range(100):
        x.relu_()
    assert (simulator.now, simulator.busy_until()) == (1_000, 100_010)
    torch.accelerator.synchronize()
    assert simulator.now == 100_010


def test_a_device_that_is_faster_than_its_host_waits_for_launches(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=10, launch=1_000)
    x.relu().relu()
    assert spans(simulator) == [("relu", 1_000, 1_010), ("relu", 2_000, 2_010)]


def test_a_host_with_other_work_lets_the_device_run_dry(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000)
    x.relu()
    simulator.host(5_000)
    x.relu()
    assert spans(simulator) == [("relu", 0, 1_000), ("relu", 5_000, 6_000)]


def test_a_host_that_is_too_far_ahead_waits_for_a_place_in_the_queue(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000, queue=3)
    for _ in range(5):
        x.relu()
    assert simulator.now == 2_000
    assert simulator.ledger.synchronisations == ()


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ({"kernel": 7}, 7),
        ({"kernel": 7, "kernels": {"mm": 50}}, 50),
        ({"kernel": 7, "kernels": {"addmm": 50}}, 7),
        ({"kernel": 7, "flops_per_second": 1e9}, 7 + 2 * 4 * 4 * 4),
        ({"kernel": 7, "bytes_per_second": 1e9}, 7 + 3 * 4 * 4 * 4),
        ({"flops_per_second": 1e9, "bytes_per_second": 1e8}, 3 * 4 * 4 * 4 * 10),
    ],
)
def test_a_kernel_costs_what_its_name_or_its_size_says(simulator: Simulator, costs: dict, expected: int) -> None:
    x = prepared(simulator, **costs)
    x @ x
    (kernel,) = simulator.ledger.kernels
    assert (kernel.end - kernel.start, kernel.flops, kernel.bytes) == (expected, 128, 192)


def test_products_convolutions_and_attention_count_their_arithmetic(simulator: Simulator) -> None:
    images, weights = torch.ones(2, 3, 8, 8).to("sim"), torch.ones(5, 3, 3, 3).to("sim")
    parts = [torch.ones(2, 4, 6, 8).to("sim") for _ in range(3)]
    simulator.reset()
    torch.nn.functional.conv2d(images, weights, padding=1)
    torch.nn.functional.scaled_dot_product_attention(*parts)
    torch.baddbmm(torch.ones(2, 6, 6).to("sim"), parts[0][:, 0], parts[1][:, 0].mT)
    found = {kernel.name: kernel.flops for kernel in simulator.ledger.kernels if kernel.flops}
    assert found["convolution"] == 2 * (2 * 5 * 8 * 8) * (3 * 3 * 3)
    assert found["_scaled_dot_product_flash_attention_for_cpu"] == 2 * 2 * (2 * 4) * 6 * 6 * 8
    assert found["baddbmm"] == 2 * 2 * 6 * 8 * 6


def test_views_cost_nothing(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000, launch=10)
    x.view(16).reshape(2, 8).t()[0].unsqueeze(1).expand(-1, 3).detach().chunk(2)
    torch.view_as_real(x.to(torch.complex64))[..., 0].unfold(0, 2, 1)
    assert [kernel.name for kernel in simulator.ledger.kernels] == ["copy_"]
    assert simulator.now == 10


def test_streams_run_beside_one_another(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000)
    with torch.Stream("sim"):
        x.exp()
        x.exp()
    x.relu()
    assert spans(simulator) == [("exp", 0, 1_000), ("exp", 1_000, 2_000), ("relu", 0, 1_000)]


def test_a_stream_waits_for_an_event_of_another(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000)
    side = torch.sim.Stream()
    with torch.sim.stream(side):
        x.exp()
        reached = side.record_event()
        x.exp()
    x.relu()
    torch.sim.current_stream().wait_event(reached)
    x.relu()
    torch.sim.current_stream().wait_stream(side)
    x.relu()
    assert spans(simulator)[2:] == [("relu", 0, 1_000), ("relu", 1_000, 2_000), ("relu", 2_000, 3_000)]


@pytest.mark.parametrize("kind", ["torch.Event", "torch.sim.Event"])
def test_events_measure_the_device_and_not_the_host(simulator: Simulator, kind: str) -> None:
    x = prepared(simulator, kernel=1_000_000, launch=10)
    make = torch.sim.Event if kind == "torch.sim.Event" else lambda **timing: torch.Event("sim", **timing)
    before, after = make(enable_timing=True), make(enable_timing=True)
    before.record()
    for _ in range(10):
        x.relu()
    after.record()
    assert (before.query(), after.query()) == (True, False)
    with pytest.raises(RuntimeError, match="must be completed"):
        before.elapsed_time(after)
    after.synchronize()
    assert (after.query(), before.elapsed_time(after)) == (True, 10.00001)


def test_backward_runs_on_the_clock_of_the_forward_pass(simulator: Simulator) -> None:
    x = prepared(simulator, kernel=1_000, launch=10).requires_grad_()
    loss = (x * x).sum()
    loss.backward()
    ends = [kernel.end for kernel in simulator.ledger.kernels]
    assert ends == [10 + 1_000 * (number + 1) for number in range(len(ends))]
    assert simulator.now == 10 * len(ends)


def test_steps_are_told_apart(simulator: Simulator) -> None:
    x = prepared(simulator)
    x.relu()
    assert simulator.step() == 1
    x.exp()
    x.sum().item()
    ledger = simulator.ledger.of_step(1)
    assert [kernel.name for kernel in ledger.kernels] == ["exp", "sum"]
    assert len(ledger.copies) == len(ledger.synchronisations) == 1


def test_in_real_time_whoever_waits_sleeps_until_the_device_is_done(simulator: Simulator) -> None:
    watched = simulation.start(devices=2, costs=Costs.free(kernel=3_000_000, launch=1_000), realtime=True)
    x = torch.ones(4, device="sim")
    before = time.monotonic_ns()
    x.relu()
    (kernel,) = [each for each in watched.ledger.kernels if each.name == "relu"]
    assert kernel.launched >= before + 1_000
    assert kernel.end - kernel.start == 3_000_000
    x.sum().item()
    assert time.monotonic_ns() >= watched.busy_until()
    assert watched.ledger.synchronisations[-1].ended >= watched.ledger.kernels[-1].end
