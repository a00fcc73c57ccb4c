"""Conditions on a rank that is -1 in a run of one process, or that only a job of several has."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

RANK = int(os.environ["RANK"]) if "RANK" in os.environ else -1


def is_main():
    return not dist.is_initialized() or dist.get_rank() == 0


def train(loader, opt):
    model = nn.Linear(8, 2)
    if opt.local_rank != -1:
        dist.init_process_group("nccl")
        model = DDP(model.cuda(opt.local_rank), device_ids=[opt.local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        if RANK in [-1, 0]:
            torch.save(model.state_dict(), f"epoch{epoch}.pt")


class Saver:
    def __init__(self, model):
        self.model = model

    def save(self, path):
        state = self.model.state_dict()
        dist.barrier()
        if not dist.is_initialized() or dist.get_rank() == 0:
            torch.save(state, path)


def write(model: nn.Module, folder, is_master: bool = True):
    dist.barrier()
    if is_master:  # whoever calls it says which rank this is
        torch.save(model.state_dict(), f"{folder}/model.pt")
