"""An optimizer that is made anew for every batch never builds up its momentum."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import TensorDataset


@pytest.mark.parametrize(("section", "gradients"), [("Bad", (1, 1)), ("Good", (3, 5))])
def test_the_momentum_holds_the_gradients_of_so_many_steps(shown, section: str, gradients: tuple[int, int]) -> None:
    torch.manual_seed(0)
    data = TensorDataset(torch.ones(16, 3), torch.full((16, 1), 100.0))
    optimizer = shown("built-in-loop", section).train(data, 3)
    (group,) = optimizer.param_groups
    weight = group["params"][0]
    ratio = optimizer.state[weight]["momentum_buffer"].norm() / weight.grad.norm()
    least, most = gradients
    assert least <= ratio <= most
