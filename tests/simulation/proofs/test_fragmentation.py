"""A batch for which there is room alone finds holes that are too small after one of another length, unless both are padded.

Of the longer batch a tensor takes 11 MiB, in a segment of 12 MiB of its own; of the shorter one 8.6 MiB, two in a segment
of 20 MiB. That has room for one tensor of the longer batch, and leaves a hole of 9 MiB.
"""

from __future__ import annotations

import re

import pytest
import torch
from devices import Device
from torch import nn

MIB = 2**20
BATCH, WIDTH, LAYERS = 44, 64, 10
SHORT, LONG = 800, 1024


class Text(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Parameter(torch.ones(LAYERS, WIDTH))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = tokens[..., None] * self.gates[0]
        for gate in self.gates:
            hidden = hidden * gate
        return self.head(hidden.mean(1))


def train(device: Device, section: str, lengths: list[int]) -> None:
    model = Text().to(device.name)
    loader = [(torch.ones(BATCH, length), torch.zeros(BATCH, dtype=torch.long)) for length in lengths]
    device.shown("fragmentation", section).train(model, loader, torch.optim.SGD(model.parameters(), 0.01))


def room(device: Device) -> int:
    """What the allocator takes for the longer batch alone."""
    device.module.empty_cache()
    before = int(device.module.memory_reserved())
    device.module.reset_peak_memory_stats()
    train(device, "Good", [LONG])
    taken = int(device.module.max_memory_reserved()) - before
    device.module.empty_cache()
    return taken


def test_after_a_shorter_batch_there_is_no_room_for_one_that_fits_alone(device: Device) -> None:
    limit = room(device)
    device.limit(limit)
    train(device, "Bad", [LONG])
    device.module.empty_cache()
    with pytest.raises(torch.OutOfMemoryError) as raised:
        train(device, "Bad", [SHORT, LONG])
    asked, unallocated = (
        float(re.search(text, str(raised.value))[1])
        for text in (r"allocate ([\d.]+) MiB", r"([\d.]+) MiB is reserved by PyTorch but unallocated")
    )
    assert unallocated > asked
    assert unallocated * MIB > 0.1 * limit


def test_padded_to_one_length_both_fit(device: Device) -> None:
    device.limit(room(device))
    before = device.module.memory_stats()["num_alloc_retries"]
    train(device, "Good", [SHORT, LONG])
    assert device.module.memory_stats()["num_alloc_retries"] == before
