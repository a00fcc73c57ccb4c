"""The model clears its own gradients whenever it is called."""

import torch
from torch import nn


class Clean(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        self.zero_grad()
        return self.layer(x)


def train(loader):
    model = Clean()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
