"""The loss falls as one gradient for each update makes it fall."""

from typing import Any

import torch
from torch import nn


def check(program: Any) -> None:
    torch.manual_seed(0)
    inputs, labels = torch.randn(64, 20), torch.randint(10, (64,))
    model, other = program.make_model(), program.make_model()
    other.load_state_dict(model.state_dict())
    found, wanted = program.train(model, inputs, labels), plain(other, inputs, labels)
    assert found[-1] < 0.5 * found[0], f"the loss goes from {found[0]:.3f} to {found[-1]:.3f}"
    off = max(abs(x - y) for x, y in zip(found, wanted, strict=True))
    assert off < 1e-4, f"another training than one gradient for each update: losses are off by up to {off:.3g}"


def plain(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> list[float]:
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
