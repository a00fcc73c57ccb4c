"""Samplers for two ranks that look forgotten: told the epoch, a validation, a look at the data, one epoch, data that
shuffle themselves, and a sampler that does not shuffle.
"""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Curriculum(Dataset):
    """Its order is its own, and new in every epoch."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.order = torch.arange(len(x))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[self.order[index]], self.y[self.order[index]]

    def again(self):
        self.order = torch.randperm(len(self.x))


class EpochSampler(DistributedSampler):
    """Counts the epochs itself."""

    def __iter__(self):
        order = super().__iter__()
        self.epoch += 1
        return order


torch.manual_seed(0)
x = torch.randn(192, 8)
y = torch.randint(0, 5, (192,))
data, curriculum = TensorDataset(x, y), Curriculum(x, y)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.SGD(model.parameters(), 0.1)


def sampler(dataset, **options):
    return DistributedSampler(dataset, num_replicas=2, rank=0, **options)


def learn(loader):
    for points, names in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points), names).backward()
        optimizer.step()


told = sampler(data)
train = DataLoader(data, 16, sampler=told)
val = DataLoader(TensorDataset(x[:64], y[:64]), 16, sampler=sampler(TensorDataset(x[:64], y[:64])))
plain = DataLoader(data, 16, sampler=sampler(data, shuffle=False))
own = EpochSampler(data, num_replicas=2, rank=0, seed=5)
other = TensorDataset(x.clone(), y.clone())
once = DataLoader(other, 16, sampler=sampler(other))
next(iter(once))
learn(once)
for epoch in range(3):
    told.set_epoch(epoch)
    learn(train)
    learn(plain)
    learn(DataLoader(data, 16, sampler=own))
    learn(DataLoader(curriculum, 16, sampler=sampler(curriculum)))
    curriculum.again()
    part = TensorDataset(x[epoch * 64 : epoch * 64 + 64], y[epoch * 64 : epoch * 64 + 64])
    learn(DataLoader(part, 16, sampler=sampler(part)))
    model.eval()
    with torch.no_grad():
        right = sum(int((model(points).argmax(1) == names).sum()) for points, names in val)
    model.train()
print(right)
