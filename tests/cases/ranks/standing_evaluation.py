"""Rank 0 evaluates for a while on a model of its own, the others wait at a barrier, and all go on."""
# ranks: 2
# hang: 3

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)


def step(x):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()


for number in range(40):
    step(torch.randn(16, 8))
    if number == 20:
        if rank == 0:
            ends = time.monotonic() + 6
            with torch.no_grad():
                while time.monotonic() < ends:
                    model.module(torch.randn(64, 8))
        dist.barrier()
dist.destroy_process_group()
