"""The number of the process under a short name stands around the save."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def early():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    if r != 0:
        return
    torch.save(model.module.state_dict(), "m.pt")


def plain():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    if r == 0:
        torch.save(model.module.state_dict(), "m.pt")


def otherwise():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    if r > 0:
        print("waits")
    else:
        torch.save(model.module.state_dict(), "m.pt")


def write(net, i):
    if i:
        return
    torch.save(net.module.state_dict(), "m.pt")


def given():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    write(model, r)


def write_now(net):
    torch.save(net.module.state_dict(), "m.pt")


def called():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    if r == 0:
        write_now(model)


def in_turn():
    dist.init_process_group("nccl")
    r = dist.get_rank()
    model = DDP(torch.nn.Linear(8, 8).cuda(r % 8), device_ids=[r % 8])
    for i in range(4):
        if i == r:
            torch.save(model.module.state_dict(), "m.pt")
        dist.barrier()
