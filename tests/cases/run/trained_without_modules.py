"""Weights without a module, and a loss over all pairs: both are the training's own computing."""

import torch

torch.manual_seed(0)
first = (torch.randn(256, 512) * 0.05).requires_grad_()
second = (torch.randn(512, 64) * 0.05).requires_grad_()
optimizer = torch.optim.SGD([first, second], 0.01)
x = torch.randn(512, 256)


def embed(inputs: torch.Tensor) -> torch.Tensor:
    hidden = torch.tanh(inputs @ first)
    return hidden @ second


def alike(embedded: torch.Tensor) -> torch.Tensor:
    pairs = embedded @ embedded.T / 8.0
    return (torch.logsumexp(pairs, 1) - pairs.diagonal()).mean()


for _ in range(60):
    optimizer.zero_grad()
    loss = alike(embed(x + 0.1 * torch.randn(512, 1)))
    loss.backward()
    optimizer.step()
