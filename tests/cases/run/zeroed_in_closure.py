"""A closure leaves no gradients to the step that called it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def closure() -> torch.Tensor:
    x = torch.randn(32, 8)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.zero_grad()  # expect: zeroed-before-step
    return loss


for _ in range(20):
    optimizer.step(closure)
