"""Rank 0 writes a checkpoint to a slow disk, the others wait for it, and all go on."""
# ranks: 2
# hang: 3

import tempfile
import time
from pathlib import Path

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


def save(folder):
    for part in range(30):
        Path(folder, f"part-{part}").write_bytes(bytes(1 << 19))
        time.sleep(0.2)


for number in range(40):
    step(torch.randn(16, 8))
    if number == 20:
        if rank == 0:
            with tempfile.TemporaryDirectory() as folder:
                save(folder)
        dist.barrier()
dist.destroy_process_group()
