"""The same with the rank that the process group knows."""

import torch
import torch.distributed as dist
from torch import nn


class Trainer:
    def __init__(self, model: nn.Module):
        dist.init_process_group("nccl")
        self.rank = dist.get_rank()
        self.device = torch.device(f"cuda:{self.rank}")  # expect: global-rank-as-device
        self.model = nn.parallel.DistributedDataParallel(model.to(self.device), device_ids=[self.device])
