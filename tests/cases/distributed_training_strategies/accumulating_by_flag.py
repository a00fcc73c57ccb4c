"""Accumulation that switches the averaging by an attribute of the wrapper."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(model: nn.Module, loader, local_rank: int, every: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.zero_grad()
    for step, (inputs, targets) in enumerate(loader):
        model.require_backward_grad_sync = (step + 1) % every == 0
        loss = nn.functional.cross_entropy(model(inputs), targets) / every
        loss.backward()
        if (step + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()
