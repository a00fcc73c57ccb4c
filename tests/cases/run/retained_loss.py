"""A history list keeps every loss together with its graph."""

import torch
from torch import nn


def train() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    history = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 16)).pow(2).mean()
        loss.backward()
        optimizer.step()
        history.append(loss)  # expect: graph-retained
    print(len(history))


train()
