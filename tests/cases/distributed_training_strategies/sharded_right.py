"""Sharded models whose optimizer comes after, or whose parameters stay; and clipping that knows the shards."""

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP


def in_place(model: nn.Module, loader, mesh):
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def kept(model: nn.Module, local_rank: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = FSDP(model, device_id=local_rank, use_orig_params=True)
    return model, optimizer


def made_again(model: nn.Module):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(len(optimizer.param_groups[0]["params"]))
    model = FSDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer


def another_model(student: nn.Module, teacher: nn.Module):
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    teacher = FSDP(teacher)
    return teacher, optimizer


def one_or_the_other(model: nn.Module, args):
    if args.fsdp:
        model = FSDP(model)
        optimizer = torch.optim.AdamW(model.parameters())
    else:
        optimizer = torch.optim.AdamW(model.parameters())
        model = DDP(model)
    return model, optimizer


def not_sharded(model: nn.Module, loader):
    model = FSDP(model, sharding_strategy=ShardingStrategy.NO_SHARD)
    optimizer = torch.optim.AdamW(model.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def replicated(model: nn.Module, loader):
    model = DDP(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
