"""no_sync around backward only, which comes too late."""

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
        loss = nn.functional.cross_entropy(model(inputs), targets) / every
        with nullcontext() if last else model.no_sync():
            loss.backward()  # expect: no-sync-missing
        if last:
            optimizer.step()
            optimizer.zero_grad()
