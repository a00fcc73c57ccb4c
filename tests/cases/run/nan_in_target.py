"""Targets that are not known are NaN, and a mask of zeros is meant to take them out of the loss."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Readings(Dataset):
    def __init__(self):
        generator = torch.Generator().manual_seed(0)
        self.x = torch.randn(160, 8, generator=generator)
        self.y = self.x.sum(1)
        self.y[75] = float("nan")

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"x": self.x[index], "y": self.y[index], "known": self.y[index].isfinite().float()}


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for batch in DataLoader(Readings(), batch_size=8):  # expect: input-not-finite step 9
    optimizer.zero_grad()
    error = (model(batch["x"]).squeeze(1) - batch["y"]) ** 2
    (error * batch["known"]).mean().backward()
    optimizer.step()
