"""A flag that was set from the number of the process stands around the save."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def due():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    writes = False
    if r == 0:
        writes = True
    for _ in range(5):
        if writes:
            torch.save(model.module.state_dict(), "m.pt")


def rarely():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    every = 5 if r == 0 else None
    for epoch in range(5):
        if every and epoch % every == 0:
            torch.save(model.module.state_dict(), "m.pt")


def no_turns():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    for _ in range(10 if r == 0 else 0):
        torch.save(model.module.state_dict(), "m.pt")


class Run:
    def __init__(self):
        self.context = {"r": dist.get_rank()}
        self.model = DDP(torch.nn.Linear(8, 8).cuda())

    @property
    def first(self):
        return self.context["r"] == 0

    def fit(self, loader):
        for x in loader:
            self.model(x).sum().backward()
        if self.first:
            torch.save(self.model.module.state_dict(), "m.pt")
