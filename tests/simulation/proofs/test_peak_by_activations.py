"""A peak of activations falls when they are computed again, or with the batch; the gradients stay."""

from __future__ import annotations

import pytest
import torch
from devices import Device
from torch import nn

MIB = 2**20
BLOCKS, WIDTH, BATCH = 8, 128, 4096


class Block(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.Tanh())


def train(device: Device, section: str, batch: int = BATCH) -> list[torch.Tensor]:
    torch.manual_seed(0)
    blocks = nn.ModuleList(Block() for _ in range(BLOCKS)).to(device.name)
    loader = [(torch.randn(batch, WIDTH), torch.randn(batch, WIDTH))] * 2
    device.shown("peak-by-activations", section).train(blocks, loader, torch.optim.SGD(blocks.parameters(), 0.1))
    return [each.detach().cpu() for each in blocks.parameters()]


def peak(device: Device, *arguments: object) -> int:
    device.module.reset_peak_memory_stats()
    before = device.module.memory_allocated()
    train(device, *arguments)
    return int(device.module.max_memory_allocated()) - before


def test_half_the_batch_has_nearly_half_the_peak(device: Device) -> None:
    assert peak(device, "Bad", BATCH // 2) < 0.6 * peak(device, "Bad", BATCH)


def test_computed_again_they_take_much_less_for_the_same_weights(device: Device) -> None:
    assert peak(device, "Good") < 0.6 * peak(device, "Bad")
    for one, other in zip(train(device, "Bad"), train(device, "Good"), strict=True):
        torch.testing.assert_close(one, other)


def test_a_device_between_both_peaks_has_room_for_one_of_them(device: Device) -> None:
    device.limit(45 * MIB)
    train(device, "Good")
    with pytest.raises(torch.OutOfMemoryError):
        train(device, "Bad")
