"""Each rank went to a folder of its own before it saves."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def folder():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    os.makedirs(f"out{r}", exist_ok=True)
    os.chdir(f"out{r}")
    torch.save(model.module.state_dict(), "m.pt")
