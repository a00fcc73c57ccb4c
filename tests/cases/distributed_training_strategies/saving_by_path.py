"""Only one rank has a path, or each has its own."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def none():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    out = None
    if r == 0:
        out = "m.pt"
    if out is not None:
        torch.save(model.module.state_dict(), out)


def nowhere():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    out = "m.pt"
    if r > 0:
        out = "/dev/null"
    torch.save(model.module.state_dict(), out)
