"""A barrier waits for all that was sent before it."""

import torch
import torch.distributed as dist


def gather(x: torch.Tensor, sizes: list[int]) -> list[torch.Tensor]:
    parts = []
    for i, size in enumerate(sizes):
        part = x if i == dist.get_rank() else x.new_empty((size, x.shape[1]))
        dist.broadcast(part, src=i, async_op=True)
        parts.append(part)
    dist.barrier()
    return parts
