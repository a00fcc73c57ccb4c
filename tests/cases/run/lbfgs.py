"""A closure that zeroes and differentiates several times per step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
x, y = torch.randn(64, 8), torch.randn(64, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)


def closure() -> torch.Tensor:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(20):
    optimizer.step(closure)
