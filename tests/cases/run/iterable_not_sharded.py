"""A stream of lines that every worker reads from its beginning."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, table):
        self.table = table

    def parsed(self):
        for row in self.table:
            yield row[:-1], row[-1:]

    def __iter__(self):  # expect: iterable-not-sharded
        yield from self.parsed()


torch.manual_seed(0)
x = torch.randn(40, 9)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for points, targets in DataLoader(Lines(x), batch_size=8, num_workers=2):
    optimizer.zero_grad()
    (model(points) - targets).pow(2).mean().backward()
    optimizer.step()
