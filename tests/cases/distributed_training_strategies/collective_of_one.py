"""A job of one process waits for nobody."""

import torch.distributed as dist


def finish(total):
    r, w = dist.get_rank(), dist.get_world_size()
    if w == 1 and r == 0:
        dist.barrier()
    if r == 0:
        dist.all_reduce(total)  # expect: collective-on-some-ranks
