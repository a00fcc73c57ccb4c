"""A temperature and scales that are meant to be learned, as plain tensors."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.scale = torch.ones(width, requires_grad=True)  # expect: unregistered-tensor module scale

    def forward(self, x):
        return self.inner(x) * self.scale


torch.manual_seed(0)
model = Scaled(8)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
x = torch.randn(64, 8)
for _ in range(30):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), 3 * x).backward()
    optimizer.step()
