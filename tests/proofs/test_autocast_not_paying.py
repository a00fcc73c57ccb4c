"""Casting the weights costs more than the products of a small batch, and the products of a large batch are another matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from time import thread_time

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def seconds(model: nn.Module, inputs: torch.Tensor, *, autocast: bool) -> float:
    """CPU time of the fastest of five forward passes."""
    times = []
    for _ in range(5):
        began = thread_time()
        with torch.autocast("cpu", dtype=torch.bfloat16) if autocast else nullcontext():
            model(inputs)
        times.append(thread_time() - began)
    return min(times)


def test_a_forward_pass_of_four_rows_takes_longer_under_autocast() -> None:
    model = nn.Sequential(*[layer for _ in range(8) for layer in (nn.Linear(1536, 1536), nn.ReLU())])
    inputs = torch.randn(4, 1536)
    assert seconds(model, inputs, autocast=True) > 1.1 * seconds(model, inputs, autocast=False)


def test_every_weight_is_cast_in_every_region() -> None:
    model = nn.Linear(8, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        node = model(torch.randn(4, 8)).grad_fn
    names = {each.name() for each, _ in node.next_functions if each is not None}
    below = {each.name() for node, _ in node.next_functions if node for each, _ in node.next_functions if each}
    assert "ToCopyBackward0" in names | below


def test_both_train(shown) -> None:
    for section in ("Bad", "Good"):
        shown("autocast-not-paying", section).train(steps=1)
