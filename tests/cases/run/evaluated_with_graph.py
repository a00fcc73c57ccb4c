"""A validation after each epoch in evaluation mode, with autograd on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
points = torch.randn(320, 8)
names = (points.sum(1) > 0).long()
train = DataLoader(TensorDataset(points[:160], names[:160]), 16, shuffle=True)
held_out = DataLoader(TensorDataset(points[160:], names[160:]), 10)


def accuracy(model):
    model.eval()
    right = 0
    for x, y in held_out:
        logits = model(x)  # expect: eval-builds-graph
        right += (logits.argmax(1) == y).sum().item()
    model.train()
    return right / 160


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(3):
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    print(accuracy(model))
