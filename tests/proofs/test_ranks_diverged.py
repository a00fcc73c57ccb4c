"""Clipped on one rank alone, the replicas part while the loss falls."""

from __future__ import annotations

BODY = """
model = shown.train()
torch.manual_seed(1)
inputs = torch.randn(100, 4)
with torch.no_grad():
    loss = torch.nn.functional.mse_loss(model.module(inputs), inputs.sum(1, keepdim=True) + 3).item()
result = [model.module.weight.flatten().tolist(), loss]
"""


def test_the_weights_part_and_the_loss_falls_all_the_same(ranks) -> None:
    found = ranks("ranks-diverged", BODY)
    (one, loss), (other, _) = found["Bad"]
    assert all(mine != theirs for mine, theirs in zip(one, other, strict=True))
    assert loss < 13 / 2  # four weights of 1 and an offset of 3 that nobody has learned cost 4 + 9
    assert found["Good"][0][0] == found["Good"][1][0]
