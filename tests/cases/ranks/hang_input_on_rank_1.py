"""Rank 1 waits for a lock that nobody gives back, while rank 0 waits for rank 1."""
# ranks: 2
# hang: 3

import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
cache = threading.Lock()


def batch(step):
    cache.acquire()  # expect: collective-on-some-ranks rank 1
    x = torch.randn(16, 8)
    if step == 30 and dist.get_rank() == 1:
        return x, x.sum(1, keepdim=True)
    cache.release()
    return x, x.sum(1, keepdim=True)


for step in range(60):
    x, y = batch(step)
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
