"""Noise from a generator that belongs to a transform of the dataset: both workers draw the same."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Jitter:
    def __init__(self, width):
        self.width = width
        self.rng = np.random.default_rng(7)  # expect: dataset-owned-rng

    def __call__(self, x):
        return x + torch.from_numpy(self.rng.normal(0, self.width, x.shape)).float()


class Points(Dataset):
    def __init__(self, points, transforms):
        self.points, self.transforms = points, transforms

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        x = self.points[index]
        for transform in self.transforms:
            x = transform(x)
        return x, self.points[index].sum()


torch.manual_seed(0)
data = Subset(Points(torch.randn(80, 8), [Jitter(0.1)]), range(32))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for epoch in range(2):
    for points, targets in DataLoader(data, batch_size=8, num_workers=2, shuffle=True):
        optimizer.zero_grad()
        (model(points).squeeze(1) - targets).pow(2).mean().backward()
        optimizer.step()
