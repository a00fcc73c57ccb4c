"""Devices by the number of the process on its machine."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def by_launcher(model: nn.Module):
    dist.init_process_group("nccl")
    rank, local_rank = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(local_rank)
    print(rank)
    return DDP(model.to(local_rank), device_ids=[local_rank])


def by_remainder(model: nn.Module):
    dist.init_process_group("nccl")
    device = dist.get_rank() % torch.cuda.device_count()
    torch.cuda.set_device(device)
    return DDP(model.to(device), device_ids=[device])


def by_argument(model: nn.Module, rank: int):
    torch.cuda.set_device(rank)
    return DDP(model.to(rank), device_ids=[rank])


def by_option(model: nn.Module, args):
    torch.cuda.set_device(args.gpu)
    return DDP(model.to(args.gpu), device_ids=[args.gpu])


def either(model: nn.Module, args):
    rank = args.gpu if args.gpu is not None else dist.get_rank()
    return model.to(rank)
