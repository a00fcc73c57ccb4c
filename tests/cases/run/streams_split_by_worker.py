"""Streams that look read twice: split by worker, drawn at random, of one constant, and each sample twice on purpose."""

from itertools import islice

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Split(IterableDataset):
    def __init__(self, table):
        self.table = table

    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for row in islice(self.table, first, None, step):
            yield row[:-1], row[-1:]


class Twice(Split):
    """Repeated augmentation: every sample comes in two views that follow one another."""

    def __iter__(self):
        for x, y in super().__iter__():
            yield x, y
            yield x.flip(0), y


class Drawn(IterableDataset):
    """The order of the classes is the same in every worker, the points are not."""

    def __iter__(self):
        for number in range(64):
            yield torch.randn(8), torch.tensor([float(number % 5)])


class Constant(IterableDataset):
    def __iter__(self):
        for _ in range(64):
            yield torch.ones(8), torch.zeros(1)


class Orders(Split):
    """Without an end: each worker runs through all samples again and again, in orders of its own."""

    def __iter__(self):
        while True:
            for number in torch.randperm(len(self.table)).tolist():
                yield self.table[number, :-1], self.table[number, -1:]


class DrawnRows(Split):
    """An epoch is as many samples as there are, drawn by each worker with replacement."""

    def __iter__(self):
        for number in torch.randint(len(self.table), (64,)).tolist():
            yield self.table[number, :-1], self.table[number, -1:]


torch.manual_seed(0)
table = torch.randn(128, 9)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for points, targets in DataLoader(Split(table[:64]), batch_size=8, num_workers=2):
    optimizer.zero_grad()
    (model(points) - targets).pow(2).mean().backward()
    optimizer.step()
for stream in (Twice(table), Drawn(), Constant(), Orders(table[:64]), DrawnRows(table[:64])):
    with torch.no_grad():
        for points, targets in islice(DataLoader(stream, batch_size=8, num_workers=2), 32):
            (model(points) - targets).pow(2).mean()
