"""Tests that take the number of the rank for a truth value."""

import torch
import torch.distributed as dist


def share(value: torch.Tensor) -> torch.Tensor:
    dist.all_reduce(value)
    return value / dist.get_world_size()


def report(value: torch.Tensor):
    rank = dist.get_rank()
    if not rank:
        print(share(value))  # expect: collective-on-some-ranks


def report_rightly(value: torch.Tensor):
    rank = dist.get_rank()
    mean = share(value)
    if not rank:
        print(mean)
