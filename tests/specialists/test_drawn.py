"""Whether weights are distributed as torch.nn.init draws them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torchtriage.specialists.module_design_patterns.probes.frozen import _fans, _figures, _is_drawn


def is_drawn(weight: torch.Tensor) -> bool:
    return _is_drawn(_fans(weight), min(weight.numel(), 4096), _figures(weight).tolist())


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: nn.Linear(64, 48).weight, id="Linear"),
        pytest.param(lambda: nn.Conv2d(16, 24, 3).weight, id="Conv2d"),
        pytest.param(lambda: nn.Embedding(500, 16).weight, id="Embedding"),
        pytest.param(lambda: nn.LSTM(24, 32).weight_hh_l0, id="LSTM"),
        pytest.param(lambda: nn.MultiheadAttention(32, 4).in_proj_weight, id="MultiheadAttention"),
        pytest.param(lambda: nn.init.xavier_normal_(torch.empty(80, 60)), id="Xavier"),
        pytest.param(lambda: nn.init.kaiming_normal_(torch.empty(32, 16, 3, 3), mode="fan_out"), id="He, by outputs"),
        pytest.param(lambda: nn.init.kaiming_uniform_(torch.empty(80, 60), nonlinearity="relu"), id="He, uniform"),
        pytest.param(lambda: nn.init.normal_(torch.empty(80, 60), std=0.02), id="transformers"),
    ],
)
def test_weights_as_torch_draws_them_are_known(make: Callable[[], torch.Tensor]) -> None:
    torch.manual_seed(0)
    with torch.no_grad():
        assert sum(is_drawn(make()) for _ in range(50)) >= 49


def trained() -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        x = torch.randn(64, 16)
        optimizer.zero_grad()
        F.cross_entropy(model(x), x[:, :4].argmax(1)).backward()
        optimizer.step()
    return next(model.parameters())


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(trained, id="30 steps of SGD"),
        pytest.param(lambda: torch.zeros(64, 48), id="zeros"),
        pytest.param(lambda: torch.eye(64), id="the identity"),
        pytest.param(lambda: torch.sin(torch.arange(64)[:, None] / 10 ** (torch.arange(48) / 12)), id="places"),
        pytest.param(lambda: nn.Linear(64, 48).weight * 1.1, id="a wider range"),
        pytest.param(lambda: torch.distributions.StudentT(4.0).sample((64, 48)) * 0.1, id="heavy tails"),
        pytest.param(lambda: nn.Linear(64, 48).weight + 0.05, id="not around zero"),
    ],
)
def test_weights_that_mean_something_are_not_taken_for_a_draw(make: Callable[[], torch.Tensor]) -> None:
    with torch.no_grad() if make is not trained else torch.enable_grad():
        weight = make()
    assert not is_drawn(weight.detach())
