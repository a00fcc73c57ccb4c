"""Optimizers and clipping beside sharded models."""

import torch
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy, fully_shard


def flattened(model: nn.Module, loader, local_rank: int):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)  # expect: optimizer-before-sharding
    model = FSDP(model, device_id=local_rank)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-on-sharded
        optimizer.step()


class Trainer:
    def __init__(self, model: nn.Module, mesh):
        self.model = model
        groups = [{"params": [p for n, p in self.model.named_parameters() if "bias" not in n], "weight_decay": 0.1}]
        self.optimizer = torch.optim.AdamW(groups)  # expect: optimizer-before-sharding
        for layer in self.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(self.model, mesh=mesh)

    def step(self, inputs, targets):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()


class Sharded:
    def __init__(self, model: nn.Module, policy):
        self.model = FSDP(model, auto_wrap_policy=policy, sharding_strategy=ShardingStrategy.FULL_SHARD)
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def train(self, loader):
        for inputs, targets in loader:
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(inputs), targets).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=0.5)  # expect: clip-on-sharded
            self.optimizer.step()


def wrap(model: nn.Module, local_rank: int):
    return FSDP(model, device_id=local_rank)


def make_optimizer(model: nn.Module, rate: float):
    return torch.optim.AdamW(model.parameters(), lr=rate)


def by_helpers(model: nn.Module, local_rank: int):
    optimizer = make_optimizer(model, 1e-4)  # expect: optimizer-before-sharding
    model = wrap(model, local_rank)
    return model, optimizer


def by_helpers_in_order(model: nn.Module, local_rank: int):
    model = wrap(model, local_rank)
    optimizer = make_optimizer(model, 1e-4)
    return model, optimizer
