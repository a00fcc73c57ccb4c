"""Missing values are NaN in the batches, and meant: the model fills them, and a loss leaves out those of the targets."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(480, 8)
y = x @ torch.randn(8, 2)
x[torch.rand(480, 8) < 0.1] = float("nan")
y[torch.rand(480, 2) < 0.1] = float("nan")


class Filling(nn.Module):
    def __init__(self):
        super().__init__()
        self.fill = nn.Parameter(torch.zeros(8))
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, given):
        missing = given.isnan()
        return self.net(torch.cat([torch.where(missing, self.fill, given), missing.float()], 1))


model = Filling()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(2):
    for given, wanted in DataLoader(TensorDataset(x, y), batch_size=16):
        known = ~wanted.isnan()
        loss = (model(given)[known] - wanted[known]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
