"""Every worker reads the whole stream and shuffles it with a seed of its own."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Shuffled(IterableDataset):
    buffer = 16

    def rows(self):
        raise NotImplementedError

    def __iter__(self):  # expect: iterable-not-sharded
        held, draw = [], random.Random(torch.initial_seed())
        for row in self.rows():
            held.append(row)
            if len(held) >= self.buffer:
                yield held.pop(draw.randrange(len(held)))
        draw.shuffle(held)
        yield from held


class Table(Shuffled):
    def __init__(self, table):
        self.table = table

    def rows(self):
        for row in self.table:
            yield row[:-1], row[-1:]


torch.manual_seed(0)
x = torch.randn(96, 9)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for _ in range(2):
    for points, targets in DataLoader(Table(x), batch_size=8, num_workers=2):
        optimizer.zero_grad()
        (model(points) - targets).pow(2).mean().backward()
        optimizer.step()
