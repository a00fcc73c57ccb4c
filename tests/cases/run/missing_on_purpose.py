"""NaN and infinity in batches, and meant: missing values that are filled, unknown targets left out, masks, a guard."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(320, 8)
y = x.sum(1)
x[::7, 2] = float("nan")
unknown = y.clone()
unknown[::5] = float("nan")
mask = torch.zeros(320, 8)
mask[:, 5] = float("-inf")
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for number, (batch, target, hidden) in enumerate(DataLoader(TensorDataset(x, unknown, mask), batch_size=16)):
    missing = batch.isnan()
    filled = torch.cat([batch.nan_to_num(), missing.float()], 1)
    known = target.isfinite()
    prediction = model(filled).squeeze(1) + (torch.softmax(filled[:, :8] + hidden, 1) * filled[:, :8]).sum(1)
    loss = ((prediction - target)[known] ** 2).mean()
    if number == 12:
        loss = loss * float("nan")
    if not torch.isfinite(loss):
        continue
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
