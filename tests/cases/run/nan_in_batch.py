"""One sample of the data set holds a NaN."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs, targets = torch.randn(160, 8), torch.randint(0, 4, (160,))
inputs[90, 3] = float("nan")
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
for x, y in DataLoader(TensorDataset(inputs, targets), batch_size=8):  # expect: input-not-finite step 11
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
