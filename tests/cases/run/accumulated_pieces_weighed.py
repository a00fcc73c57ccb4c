"""One batch of a loader is cut into pieces whose losses are weighed by their shares, or which are pieces in time."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
cell = nn.GRU(8, 8)
steps = torch.optim.SGD(cell.parameters(), 1e-2)
x = torch.randn(256, 8)
for points, targets in DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32):
    optimizer.zero_grad()
    for part, target in zip(points.chunk(4), targets.chunk(4), strict=True):
        (nn.functional.mse_loss(model(part), target) * (len(part) / len(points))).backward()
    optimizer.step()
for (sequence,) in DataLoader(TensorDataset(torch.randn(64, 12, 8)), batch_size=8):
    steps.zero_grad()
    state = None
    for piece in sequence.transpose(0, 1).split(4):
        out, state = cell(piece, None if state is None else state.detach())
        nn.functional.mse_loss(out[:-1], piece[1:]).backward()
    steps.step()
