"""Rank 0 keeps a copy of the weights in every second step, and takes its time for it."""
# ranks: 2

import lzma

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(640, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
noise = bytes(torch.randint(0, 256, (200_000,)).tolist())


def keep():
    return lzma.compress(noise, preset=9)  # expect: straggler rank 0


seen = 0
for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        seen += 1
        if rank == 0 and seen % 2 == 0:
            keep()
dist.destroy_process_group()
