"""Errors that are caught on purpose: a batch now and then, a search for the largest batch, a first step without loss."""

import torch
from torch import nn


class Picky(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        if len(x) > 64:
            raise RuntimeError("out of memory, as it were")
        return self.net(x)


torch.manual_seed(0)
model = Picky()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
size = 1024
while size > 64:
    try:
        model(torch.randn(size, 8))
    except RuntimeError:
        size //= 2
for number in range(60):
    x = torch.randn(size * 2 if number % 6 == 5 else size, 8)
    optimizer.zero_grad()
    try:
        nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    except RuntimeError as error:
        print("left out:", error)
        continue
    optimizer.step()
