"""A dataset that appends every sample it decodes to a list: each epoch adds all of them again."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Decoded(Dataset):
    def __init__(self, count):
        self.count, self.seen = count, []

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        sample = torch.randn(3000, generator=torch.Generator().manual_seed(index))
        self.seen.append(sample.tolist())  # expect: memory-growth
        return sample[:64], sample[:8].sum()


torch.manual_seed(0)
loader = DataLoader(Decoded(160), 8)
model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(6):
    for x, y in loader:
        loss = (model(x).squeeze(1) - y).pow(2).mean()
        for _ in range(12):  # keeps the loader's share of a step small
            loss = loss + 0.01 * (model(x).squeeze(1) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
