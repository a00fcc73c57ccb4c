"""Gradients are averaged in buckets, and the last one, which is not full, is never sent."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(640, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Linear(64, 2))
for each in model.parameters():
    dist.broadcast(each.data, 0)
optimizer = torch.optim.SGD(model.parameters(), 0.05)


def average():
    bucket = []
    for each in reversed(list(model.parameters())):
        bucket.append(each)
        if sum(held.numel() for held in bucket) >= 4000:
            flat = torch.cat([held.grad.flatten() for held in bucket])
            dist.all_reduce(flat)
            flat /= world
            for held, part in zip(bucket, flat.split([held.numel() for held in bucket])):
                held.grad.copy_(part.view_as(held))
            bucket = []


for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        average()
        optimizer.step()  # expect: ranks-diverged
dist.destroy_process_group()
