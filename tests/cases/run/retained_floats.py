"""A history of numbers, a window of the last losses, and a sum that is itself back-propagated: nothing is retained."""

from collections import deque

import torch
from torch import nn


def train() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    history, window = [], deque(maxlen=30)
    total = torch.zeros(())
    for _ in range(60):
        optimizer.zero_grad()
        loss = sum(model(torch.randn(8, 16)).pow(2).mean() for _ in range(4))
        loss.backward()
        optimizer.step()
        history.append(loss.item())
        window.append(loss)
        total += loss.detach()
    print(sum(history), total)


train()
