"""The wrapper's own clipping where the model is sharded."""

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def train(model: nn.Module, loader, sharded: bool):
    if sharded:
        model = FSDP(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        if sharded:
            model.clip_grad_norm_(1.0)
        else:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
