"""A loss written by hand meets targets without the last dimension."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(self.body(x))


def rmse(prediction, target):
    return torch.sqrt(((target - prediction) ** 2).mean() + 1e-8)  # expect: loss-broadcast step 0


torch.manual_seed(0)
x = torch.randn(320, 8)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for batch, target in DataLoader(TensorDataset(x, x.sum(1)), batch_size=16):
    optimizer.zero_grad()
    rmse(model(batch), target).backward()
    optimizer.step()
