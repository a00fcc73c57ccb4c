"""Accumulation that averages only before the step."""

from contextlib import nullcontext

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(model: nn.Module, loader, local_rank: int, every: int):
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    optimizer.zero_grad()
    for step, (inputs, targets) in enumerate(loader):
        last = (step + 1) % every == 0
        with nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(inputs), targets) / every
            loss.backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
