"""A step of less than a millisecond, of which the interpreter takes its usual part."""

import torch
from torch import nn


class Mean:
    def __init__(self) -> None:
        self.sum = 0.0
        self.count = 0

    def update(self, value: float) -> float:
        self.sum += value
        self.count += 1
        return self.sum / self.count


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
mean = Mean()
for step in range(400):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
    loss.backward()
    optimizer.step()
    shown = f"step {step} loss {mean.update(loss.item()):.3f} rate {optimizer.param_groups[0]['lr']:.4f}"
