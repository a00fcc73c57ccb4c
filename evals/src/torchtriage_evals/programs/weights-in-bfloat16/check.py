"""The loss falls as it does in float32, at the same rate, and the products are still those of bfloat16."""

from typing import Any

import torch
from torch import nn


def check(program: Any) -> None:
    torch.manual_seed(1)
    inputs = torch.randn(32, 16)
    targets = inputs[:, :1].sin()
    types: set[torch.dtype] = set()
    model = program.make_model()
    model[0].register_forward_hook(lambda module, given, output: types.add(output.dtype))
    start = nn.utils.parameters_to_vector(model.parameters()).detach().float().clone()
    found = program.train(model, inputs, targets, steps=100)
    moved = float((nn.utils.parameters_to_vector(model.parameters()).detach().float() - start).norm())
    torch.manual_seed(0)
    full = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    begin = nn.utils.parameters_to_vector(full.parameters()).detach().clone()
    wanted = reference(full, inputs, targets)
    way = float((nn.utils.parameters_to_vector(full.parameters()).detach() - begin).norm())
    assert 0.6 * way < moved < 1.6 * way, f"the weights moved by {moved:.3g}, in float32 by {way:.3g}"
    assert abs(found[-1] - wanted[-1]) < 0.01 * wanted[0], (
        f"the loss ends at {found[-1]:.4f}, in float32 {wanted[-1]:.4f}"
    )
    assert types == {torch.bfloat16}, f"products in {types}: no speed is left"


def reference(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> list[float]:
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=2e-5), []
    for _ in range(100):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
