"""Backward runs, its gradient is that of the mask that was drawn, and half of the values are dropped."""

from typing import Any

import torch


def check(program: Any) -> None:
    torch.manual_seed(0)
    layer, inputs = program.Noisy(), torch.randn(64, 16)
    output = layer(inputs)
    output.sum().backward()
    dropped = float((output == 0).float().mean())
    assert 0.4 < dropped < 0.6, f"{100 * dropped:.0f} % of the values are dropped"
    gate = torch.sigmoid(inputs @ layer.linear.weight.detach().T + layer.linear.bias.detach())
    kept = (output != 0).float() / 0.5
    assert torch.allclose(output.detach(), gate * kept, atol=1e-6), "kept values are not scaled"
    wanted = (kept * gate * (1 - gate)).T @ inputs
    assert torch.allclose(layer.linear.weight.grad, wanted, atol=1e-4), "another gradient"
    quiet = layer.eval()(inputs)
    assert torch.allclose(quiet, gate, atol=1e-6), "something is dropped in evaluation"
