"""A mask whose result is dropped hides nothing."""

from __future__ import annotations

import torch
from torch import nn


def weights(attention) -> torch.Tensor:
    """What the first query takes from the two values, of which the second is hidden."""
    hidden = torch.tensor([[False, True]])
    return attention(torch.ones(1, 4), torch.ones(2, 4), torch.eye(2), hidden)


def test_a_dropped_mask_hides_nothing(shown) -> None:
    assert weights(shown("result-dropped", "Bad").attention).tolist() == [[0.5, 0.5]]


def test_a_mask_that_is_taken_hides(shown) -> None:
    assert weights(shown("result-dropped", "Good").attention).tolist() == [[1.0, 0.0]]


def test_a_tensor_stays_where_it_was_and_a_module_goes() -> None:
    tensor, module = torch.ones(2), nn.Linear(2, 2)
    tensor.to("meta")
    module.to("meta")
    assert tensor.device.type == "cpu"
    assert module.weight.device.type == "meta"
