"""A device that waits for launches computes a larger batch, or with faster kernels, in the same time."""

from __future__ import annotations

import torch
from devices import Device, SimulatedDevice
from torch import nn

STEPS = 5


def seconds(device: Device, batch: int) -> float:
    torch.manual_seed(0)
    layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(8)).to(device.name)
    optimizer = torch.optim.SGD(layers.parameters(), 0.01)
    batches = [(torch.randn(batch, 32), torch.randn(batch, 32))] * STEPS
    return device.seconds(lambda: device.shown("launch-bound", "Bad").train(layers, batches, optimizer))


def test_twice_the_batch_takes_no_longer(device: Device) -> None:
    device.cost(launch=10_000, kernel=1_000, flops_per_second=1e12)
    assert seconds(device, 32) < 1.2 * seconds(device, 16)


def test_the_device_idles_most_of_the_step_however_fast_it_is(simulated: SimulatedDevice) -> None:
    taken = {}
    for kernel in (4_000, 1_000):
        simulated.cost(launch=10_000, kernel=kernel)
        simulated.simulator.reset()
        taken[kernel] = seconds(simulated, 16)
        busy = sum(each.end - each.start for each in simulated.simulator.ledger.kernels) / 1e9
        assert busy < 0.5 * taken[kernel]
    assert taken[1_000] > 0.95 * taken[4_000]
