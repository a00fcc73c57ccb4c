"""A sampler for two ranks is never told the epoch; the loader is made in a helper, and labels show the order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def loader_of(dataset, rank, ranks):
    sampler = DistributedSampler(dataset, num_replicas=ranks, rank=rank, seed=3)  # expect: sampler-epoch-not-set
    return DataLoader(dataset, batch_size=16, sampler=sampler)


torch.manual_seed(0)
x = torch.randn(256, 8)
loader = loader_of(TensorDataset(x, (x.sum(1) > 0).long()), 0, 2)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(4):
    for points, names in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(points + 0.01 * torch.randn_like(points)), names).backward()
        optimizer.step()
