"""Weights that lie in a file which the program does not write."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def backbone():
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    net.load_state_dict(torch.load("./imagenet/backbone.pth", weights_only=True))
    return net


def work(rank, world):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=rank, world_size=world)
    torch.cuda.set_device(rank)
    net = DistributedDataParallel(backbone().cuda(), device_ids=[rank])
    net(torch.randn(2, 4).cuda()).sum().backward()


if __name__ == "__main__":
    mp.spawn(work, nprocs=2, args=(2,))
