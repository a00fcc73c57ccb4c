"""A sample made in a Python loop costs more than the training on it; made on whole arrays it does not."""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Threads that wait for each other on a busy machine would count as training."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def train(batches) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for images, labels in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


def cost_of_data(shown, section: str) -> float:
    """CPU time of making ten batches as a multiple of that of training on them."""
    batches = DataLoader(shown("input-bound", section).Digits(), batch_size=16)
    train([next(iter(batches))])  # the first step loads code
    began = thread_time()
    made = [batch for batch, _ in zip(batches, range(10), strict=False)]
    between = thread_time()
    train(made)
    return (between - began) / (thread_time() - between)


def test_a_python_loop_per_pixel_costs_more_than_the_training(shown) -> None:
    bad, good = (cost_of_data(shown, section) for section in ("Bad", "Good"))
    assert bad > 1.0
    assert bad > 4 * good


def test_both_make_samples_of_the_same_kind(shown) -> None:
    for section in ("Bad", "Good"):
        image, label = shown("input-bound", section).Digits()[7]
        assert (tuple(image.shape), image.dtype, label) == ((28, 28), torch.float32, 7)
        assert 0 <= image.min() <= image.max() <= 1
        assert torch.equal(image, shown("input-bound", section).Digits()[7][0])
