"""Sharding by a method of the class, and clips of lists of parameters."""

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import clip_grad_norm_


class Early:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(self.model.parameters())  # expect: optimizer-before-sharding
        self.shard()

    def shard(self):
        fully_shard(self.model)


class Late:
    def __init__(self, model):
        self.model = model
        self.shard()
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def shard(self):
        fully_shard(self.model)


def train(batches):
    model = FSDP(nn.Linear(2, 2).cuda())
    known = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(known)
    for x in batches:
        optimizer.zero_grad()
        model(x).sum().backward()
        clip_grad_norm_(known, 1.0)  # expect: clip-on-sharded
        optimizer.step()


def train_plain(batches):
    model = nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    for x in batches:
        optimizer.zero_grad()
        model(x).sum().backward()
        clip_grad_norm_(list(model.parameters()), 1.0)
        optimizer.step()
