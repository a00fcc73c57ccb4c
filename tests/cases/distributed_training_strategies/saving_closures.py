"""Saves by closures and helpers, to paths that are made on the way."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

LAST = Path(os.environ.get("RUN_DIR", ".")) / "last.pt"


def path_of(epoch):
    return f"run/{epoch:03d}.pt"


def path_of_mine(epoch):
    return f"run/{dist.get_rank()}_{epoch}.pt"


def keep(model, path):
    torch.save(model.state_dict(), path)


def run(model, epochs):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    model = DistributedDataParallel(model.to(local), device_ids=[local])
    rank = dist.get_rank()

    def snapshot(epoch):
        temporary = LAST.with_suffix(".tmp")
        torch.save({"model": model.module.state_dict(), "epoch": epoch}, temporary)  # expect: every-rank-saves
        os.replace(temporary, LAST)

    for epoch in range(epochs):
        snapshot(epoch)
        torch.save(model.module.state_dict(), path_of(epoch))  # expect: every-rank-saves
        with open(LAST.with_name("best.pt"), "wb") as file:
            torch.save(model.module.state_dict(), file)  # expect: every-rank-saves
        torch.save(model.module.state_dict(), path_of_mine(epoch))
        keep(model, f"run/part{rank}.pt")
        with open(os.environ["SLURM_PROCID"] + ".pt", "wb") as own:
            torch.save(model.module.state_dict(), own)
