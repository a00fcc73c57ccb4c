"""A first validation after twenty epochs, with gradients, and beside it one that is done as it should be."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def errors(model, loader):
    return sum((model(x).argmax(1) != y).sum().item() for x, y in loader)  # expect: eval-builds-graph


torch.manual_seed(0)
points = torch.randn(384, 8)
names = (points.sum(1) > 0).long()
learn = DataLoader(TensorDataset(points[:256], names[:256]), 16, shuffle=True)
held_out = DataLoader(TensorDataset(points[256:], names[256:]), 16)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(26):
    model.train()
    for x, y in learn:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    if epoch >= 19:
        model.eval()
        print(errors(model, held_out))
        with torch.no_grad():
            print(sum((model(x).argmax(1) == y).sum().item() for x, y in held_out))
