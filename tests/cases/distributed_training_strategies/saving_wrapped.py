"""A decorator or a list of hooks decides who saves, and so may a caller that is out of sight."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def once(function):
    def inner(*given):
        if dist.get_rank() == 0:
            function(*given)

    return inner


@once
def write(net):
    torch.save(net.module.state_dict(), "m.pt")


def hooks():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    after = []
    if r == 0:
        after.append(lambda: torch.save(model.module.state_dict(), "m.pt"))
    write(model)
    for each in after:
        each()


class Kept:
    def __init__(self):
        self.model = DDP(torch.nn.Linear(8, 8).cuda())

    def save(self):
        torch.save(self.model.module.state_dict(), "m.pt")
