"""One batch of a loader is cut into four, and the loss of each piece is weighed by one, which divides nothing."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
x = torch.randn(256, 8)


def learn(part, target, weight=1.0):
    loss = weight * nn.functional.mse_loss(model(part), target)
    loss.backward()  # expect: loss-not-averaged-over-accumulation
    return loss.detach()


for _ in range(2):
    for points, targets in DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32):
        optimizer.zero_grad()
        parts = zip(points.chunk(4), targets.chunk(4), strict=True)
        losses = [learn(*each) for each in parts]
        optimizer.step()
