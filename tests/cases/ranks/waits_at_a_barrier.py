"""Gradients are averaged by hand, and rank 1 keeps a moving average of the weights with a check that takes its time."""
# ranks: 2

import time

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 1))
average = [each.detach().clone() for each in model.parameters()]
optimizer = torch.optim.SGD(model.parameters(), 0.02)
draw = torch.Generator().manual_seed(rank)


def keep():
    for mean, each in zip(average, model.parameters(), strict=True):
        mean.lerp_(each.detach(), 0.01)
    time.sleep(0.02)  # expect: straggler rank 1


for _ in range(80):
    x = torch.randn(32, 16, generator=draw)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    for each in model.parameters():
        dist.all_reduce(each.grad)
        each.grad /= world
    optimizer.step()
    if rank == 1:
        keep()
    dist.barrier()
dist.destroy_process_group()
