"""Names that torch keeps for old code, by whatever alias, and own functions of such names."""

import torch
import torch.distributed as dist
from torch.nn.utils import clip_grad_norm as clip


def gathered(output, shard):
    dist.all_gather_into_tensor(output, shard)  # expect: api-deprecated
    clip([shard], 1.0)  # expect: api-deprecated
    return torch.cuda.memory_cached()  # expect: api-deprecated


def clip_grad_norm(parameters, limit):
    return torch.nn.utils.clip_grad_norm_(parameters, limit)


def of_this_file(parameters):
    return clip_grad_norm(parameters, 1.0)
