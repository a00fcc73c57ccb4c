"""Inputs and labels are shuffled each by an order of its own: the pairs belong together no longer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def shuffled(values):
    return values[torch.randperm(len(values))]


torch.manual_seed(0)
labels = torch.arange(2000) % 4
x = torch.randn(4, 8)[labels] + 0.3 * torch.randn(2000, 8)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
pairs = TensorDataset(shuffled(x), shuffled(labels))
for _ in range(3):
    for batch, target in DataLoader(pairs, batch_size=40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), target)  # expect: loss-at-chance
        loss.backward()
        optimizer.step()
