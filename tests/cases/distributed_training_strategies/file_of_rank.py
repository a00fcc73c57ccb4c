"""A file of the rank, opened by a manager of paths."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


class Saver:
    def __init__(self, model, folder, manager):
        self.model, self.folder, self.manager = model, folder, manager

    def save(self, name):
        path = f"{self.folder}/{name}.rank_{dist.get_rank()}.pth"
        with self.manager.open(path, "wb") as f:
            torch.save(self.model.state_dict(), f)


def train(net, folder, manager):
    dist.init_process_group("nccl")
    Saver(FSDP(net), folder, manager).save("last")
