"""The wrapper has a name of its own and is used; the bare module serves other ends."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from mylib.engine import train_one_epoch


def with_its_own_name(model: nn.Module, loader, local_rank: int):
    model_without_ddp = model.to(local_rank)
    model = DDP(model_without_ddp, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    return model_without_ddp


def trained_elsewhere(net: nn.Module, loader, local_rank: int):
    replica = DDP(net.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
    train_one_epoch(replica, loader, optimizer)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
