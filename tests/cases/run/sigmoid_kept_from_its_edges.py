"""A sigmoid and a clamp were meant for another loss; beside it, logits that are clamped, which is sound."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 8)
y = (x[:, :1] > 0.5).float()


def probability(net, inputs):
    return torch.sigmoid(net(inputs)).clamp(1e-6, 1 - 1e-6)  # expect: softmax-before-cross-entropy


model, other = (nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(2))
optimizer = torch.optim.Adam([*model.parameters(), *other.parameters()], 1e-3)
loss_of = nn.BCEWithLogitsLoss()
for start in range(0, 640, 16):
    inputs, targets = x[start : start + 16], y[start : start + 16]
    optimizer.zero_grad()
    loss_of(other(inputs).clamp(-15, 15), targets).backward()
    loss_of(probability(model, inputs), targets).backward()
    optimizer.step()
