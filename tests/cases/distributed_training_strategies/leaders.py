"""A leader that goes first under a second condition, and a part of the batches for every rank."""

import torch.distributed as dist


def leader_first(rank, load, num_gpus):
    if rank != 0 and num_gpus > 1:
        dist.barrier()
    x = load()
    if rank == 0 and num_gpus > 1:
        dist.barrier()
    return x


def f(items, rank, world):
    for b in items.chunk(world)[rank::world]:
        dist.all_reduce(b)
