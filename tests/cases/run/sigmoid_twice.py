"""Sigmoid in the training function, and a loss that takes logits."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(320, 8)
y = (x.sum(1) > 0).float()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))


def predict(batch):
    return torch.sigmoid(model(batch)).squeeze(-1)  # expect: softmax-before-cross-entropy


for start in range(0, 320, 16):
    optimizer.zero_grad()
    loss = criterion(predict(x[start : start + 16]), y[start : start + 16])
    (0.5 * loss + 1e-4 * sum(p.square().sum() for p in model.parameters())).backward()
    optimizer.step()
