"""Augmentation takes each rank now longer, now shorter, as it comes: nobody is late in most steps."""
# ranks: 2

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 128), nn.ReLU(), nn.Linear(128, 1)))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
draw = torch.Generator().manual_seed(10 + dist.get_rank())


def augmented():
    x = torch.randn(32, 24, generator=draw)
    time.sleep(float(torch.rand(1, generator=draw)) * 0.012)
    return x


for _ in range(120):
    x = augmented()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
dist.destroy_process_group()
