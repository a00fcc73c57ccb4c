"""Parameters, gradients and states of Adam take 16 bytes a parameter whatever the batch, and half of it on each of two."""

from __future__ import annotations

import pytest
import torch
from devices import Device
from torch import nn

WIDTH, BLOCKS = 512, 4
PARAMETERS = BLOCKS * WIDTH * WIDTH

BODY = """
from torch import nn

torch.manual_seed(0)
blocks = nn.ModuleList(nn.Linear(512, 512, bias=False) for _ in range(4)).to(device.name)
model = nn.Sequential(*blocks)
model, optimizer = shown.build(model) if section == "Bad" else shown.build(model, blocks)
for _ in range(2):
    model(torch.ones(4, 512, device=device.name)).square().mean().backward()
    optimizer.step()
result = device.module.memory_allocated()
"""


@pytest.mark.parametrize("batch", [1, 64])
def test_adam_takes_sixteen_bytes_a_parameter_whatever_the_batch(device: Device, batch: int) -> None:
    before = device.module.memory_allocated()
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(BLOCKS)))
    model, optimizer = device.shown("peak-by-states", "Bad").build(model)
    model(torch.ones(batch, WIDTH, device=device.name)).square().mean().backward()
    optimizer.step()
    held = device.module.memory_allocated() - before
    assert held == pytest.approx(16 * PARAMETERS, rel=0.01)


def test_two_ranks_that_share_them_hold_half_each(ranks) -> None:
    held = ranks("peak-by-states", BODY)
    for whole, part in zip(held["Bad"], held["Good"], strict=True):
        assert whole == pytest.approx(16 * PARAMETERS, rel=0.01)
        assert part == pytest.approx(whole / 2, rel=0.1)  # a layer's gradient is on its way
