"""Checkpoints that one rank writes, or each rank to a file of its own."""

import io
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from mylib.dist import rank_zero_only, this_one_writes


def is_main_process() -> bool:
    return not dist.is_initialized() or dist.get_rank() == 0


def save_on_master(*arguments):
    if is_main_process():
        torch.save(*arguments)


@rank_zero_only
def save_decorated(model, path):
    torch.save(model.module.state_dict(), path)


def save_here(model, path):
    torch.save(model.module.state_dict(), path)


def save_if_told(model, path, master: bool):
    if master:
        torch.save(model.module.state_dict(), path)


def main(args, model: nn.Module):
    dist.init_process_group("nccl")
    rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    save_on_master(model.module.state_dict(), args.output)
    save_decorated(model, args.output)
    save_if_told(model, args.output, rank == 0)
    if rank == 0:
        save_here(model, "model.pt")
    if this_one_writes(args):
        torch.save(model.module.state_dict(), "model.pt")
    torch.save(torch.get_rng_state(), f"rng_{rank}.pt")
    args.folder = os.path.join(args.folder, str(rank))
    torch.save(model.module.state_dict(), os.path.join(args.folder, "own.pt"))
    buffer = io.BytesIO()
    torch.save(model.module.state_dict(), buffer)
    if rank != 0:
        dist.destroy_process_group()
        return
    torch.save(model.module.state_dict(), "last.pt")


def worker(rank: int, size: int, model: nn.Module):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    wrapped = DDP(model)
    wrapped(torch.randn(2, 4)).sum().backward()
    dist.destroy_process_group()


def launch(model: nn.Module, size: int):
    mp.spawn(worker, args=(size, model), nprocs=size)
    torch.save(model.state_dict(), "after.pt")


class Trainer:
    def __init__(self, model: nn.Module, local_rank: int, output: str):
        self.model = DDP(model.to(local_rank), device_ids=[local_rank])
        self.is_main = local_rank == 0
        self.output = f"{output}/{local_rank}.pt"
        self.last = f"{output}/last.pt"

    def save(self):
        torch.save(self.model.module.state_dict(), self.output)
        if self.is_main:
            torch.save(self.model.module.state_dict(), self.last)

    def maybe_save(self):
        if not self.is_main:
            return
        torch.save(self.model.module.state_dict(), self.last)


def with_a_logger(model: nn.Module, args, logger=None):
    dist.init_process_group("gloo")
    replica = DDP(model)
    writer = open(args.log, "w") if dist.get_rank() == 0 else None
    if writer is not None:
        torch.save(replica.module.state_dict(), "one.pt")
    if logger is not None:
        torch.save(replica.module.state_dict(), "two.pt")
