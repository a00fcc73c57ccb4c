"""Copies between the host and devices: bytes, pinned memory, and who waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from torchtriage.simulation import Copy, Costs, Simulator, Transfer

BYTES = 400_000
PINNED, PAGEABLE, LAUNCH = 1_000 + BYTES, 2_000 + 2 * BYTES, 10
DEVICE = "sim"  # test_on_cuda.py has another


@pytest.fixture
def costly(simulator: Simulator) -> Simulator:
    simulator.costs = Costs.free(
        launch=LAUNCH,
        pinned=Transfer(1_000, 1e9),
        pageable=Transfer(2_000, 5e8),
        peer=Transfer(500, 1e9),
        staged=65_536,
    )
    return simulator


def pageable() -> torch.Tensor:
    return torch.zeros(BYTES // 4)


def pinned() -> torch.Tensor:
    return torch.zeros(BYTES // 4, pin_memory=True)


def on_device() -> torch.Tensor:
    return torch.empty(BYTES // 4, device=DEVICE)


def small() -> torch.Tensor:
    return torch.zeros(16_384)


COPIES = [
    (pageable, lambda x: x.to(DEVICE), PAGEABLE, LAUNCH + PAGEABLE),
    (pageable, lambda x: x.to(DEVICE, non_blocking=True), PAGEABLE, LAUNCH + PAGEABLE),
    (pinned, lambda x: x.to(DEVICE), PINNED, LAUNCH + PINNED),
    (pinned, lambda x: x.to(DEVICE, non_blocking=True), PINNED, LAUNCH),
    (pinned, lambda x: x[:50_000].to(DEVICE, non_blocking=True), 1_000 + BYTES // 2, LAUNCH),
    (small, lambda x: x.to(DEVICE, non_blocking=True), 2_000 + 2 * 65_536, LAUNCH),
    (small, lambda x: x.to(DEVICE), 2_000 + 2 * 65_536, LAUNCH + 2_000 + 2 * 65_536),
    (on_device, lambda x: x.cpu(), PAGEABLE, LAUNCH + PAGEABLE),
    (on_device, lambda x: pageable().copy_(x, non_blocking=True), PAGEABLE, LAUNCH + PAGEABLE),
    (on_device, lambda x: pinned().copy_(x), PINNED, LAUNCH + PINNED),
    (on_device, lambda x: pinned().copy_(x, non_blocking=True), PINNED, LAUNCH),
    (on_device, lambda x: x.to("cpu", non_blocking=True), PINNED, LAUNCH),
    (on_device, lambda x: x.to(f"{DEVICE}:1"), 500 + BYTES, LAUNCH),
]
"""What is copied how, the time of the device, and that of the host, which waits where it is longer than a launch."""


@pytest.mark.parametrize(("source", "copy", "device", "host"), COPIES)
def test_a_copy_takes_its_time_and_the_host_waits_where_it_must(
    costly: Simulator,
    source: Callable[[], torch.Tensor],
    copy: Callable[[torch.Tensor], torch.Tensor],
    device: int,
    host: int,
) -> None:
    x = source()
    costly.reset()
    copy(x)
    (found,) = costly.ledger.copies
    assert (found.end - found.start, costly.now) == (device, host)
    assert len(costly.ledger.synchronisations) == (host > LAUNCH)


def test_the_ledger_tells_what_was_copied_and_where(costly: Simulator) -> None:
    pinned().to("sim", non_blocking=True)
    (copy,) = costly.ledger.copies
    expected = Copy(0, "host-to-device", 0, 0, 10, 10, 10 + PINNED, BYTES, True, True, __file__, copy.line)
    assert copy == expected
    assert copy.line > 0


def test_a_copy_waits_its_turn_in_its_stream(costly: Simulator) -> None:
    x = pinned()
    costly.costs = Costs.free(kernel=1_000, pinned=Transfer(50))
    y = torch.empty(4, device="sim").relu_()
    x.to("sim", non_blocking=True)
    with torch.Stream("sim"):
        x.to("sim", non_blocking=True)
    y.relu_()
    assert [(each.start, each.end) for each in costly.ledger.copies] == [(1_000, 1_050), (0, 50)]
    assert costly.busy_until() == 2_050


def test_a_number_comes_to_the_host_as_a_small_copy(costly: Simulator) -> None:
    x = on_device()
    costly.reset()
    x[7].item()
    (copy,) = costly.ledger.copies
    assert (copy.kind, copy.bytes, copy.pinned) == ("device-to-host", 4, True)
    assert costly.now == LAUNCH + 1_000 + 4


def test_devices_wait_for_one_another_where_they_copy(simulator: Simulator) -> None:
    x, y = torch.ones(4).to("sim:0"), torch.ones(4).to("sim:1")
    simulator.costs = Costs.free(kernel=1_000, kernels={"exp": 5_000}, peer=Transfer(100))
    y.exp()
    x.relu().to("sim:1").add_(y)
    (copy,) = simulator.ledger.copies[2:]
    assert (copy.kind, copy.device, copy.start, copy.end) == ("device-to-device", 0, 5_000, 5_100)
    assert simulator.ledger.kernels[-1].start == 5_100


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_pins_its_batches(simulator: Simulator, workers: int) -> None:
    data = TensorDataset(torch.arange(12.0))
    batches = [x.to("sim", non_blocking=True) for (x,) in DataLoader(data, 4, pin_memory=True, num_workers=workers)]
    assert simulator.ledger.synchronisations == ()
    assert all(copy.pinned and copy.bytes == 16 for copy in simulator.ledger.copies)
    assert torch.cat(batches).tolist() == list(range(12))


def test_memory_that_is_pinned_says_so(simulator: Simulator) -> None:
    x = torch.ones(3)
    y = x.pin_memory()
    assert (x.is_pinned(), y.is_pinned(), y[1:].is_pinned(), y.clone().is_pinned()) == (False, True, True, False)
    with pytest.raises(RuntimeError, match="pin"):
        torch.ones(3, device="sim").pin_memory()
