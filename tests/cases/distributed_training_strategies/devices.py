"""Devices taken by the number of the process in the whole job."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def setup():
    dist.init_process_group("nccl")
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)  # expect: global-rank-as-device
    return rank


def main(model: nn.Module):
    rank = setup()
    local_rank = int(os.environ["LOCAL_RANK"])
    model = model.to(local_rank)
    model = DDP(model, device_ids=[local_rank])
    if rank == 0:
        print(model)
