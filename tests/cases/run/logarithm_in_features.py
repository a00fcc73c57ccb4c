"""A data set takes the logarithm of amounts that are zero at times: minus infinity, and no mask."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rain(Dataset):
    def __init__(self, n):
        generator = torch.Generator().manual_seed(0)
        self.amount = torch.rand(n, generator=generator) + 0.1
        self.amount[n // 3 :: 50] = 0.0
        self.soil = torch.rand(n, 4, generator=generator)

    def __len__(self):
        return len(self.soil)

    def __getitem__(self, index):
        return torch.cat([self.amount[index : index + 1].log(), self.soil[index]]), self.soil[index].sum()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.SiLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for features, yields in DataLoader(Rain(320), batch_size=16):  # expect: input-not-finite
    optimizer.zero_grad()
    nn.functional.huber_loss(model(features), yields).backward()
    optimizer.step()
