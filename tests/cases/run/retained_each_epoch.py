"""Losses are kept with their graphs through each short epoch, in a list that another function fills."""

import torch
from torch import nn
from torch.nn import functional


def note(store: list, value: torch.Tensor) -> None:
    store.append(value)  # expect: graph-retained


def epoch(net: nn.Module, optimizer: torch.optim.Optimizer, batches: list) -> float:
    losses = []
    for x, y in batches:
        loss = functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        note(losses, loss)
    return torch.stack(losses).mean().item()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
batches = [(x, (x[:, 0] > 0).long()) for x in torch.randn(14, 32, 8)]
for _ in range(6):
    print(epoch(net, optimizer, batches))
