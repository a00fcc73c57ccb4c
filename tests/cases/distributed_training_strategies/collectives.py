"""Collectives behind a test of the rank that nobody answers."""

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def log_metrics(loss: torch.Tensor, step: int) -> None:
    if dist.get_rank() == 0:
        dist.all_reduce(loss)  # expect: collective-on-some-ranks
        print(f"step {step} loss {loss.item() / dist.get_world_size():.4f}")


def mean_over_ranks(value: torch.Tensor) -> float:
    dist.all_reduce(value, op=dist.ReduceOp.SUM)
    return value.item() / dist.get_world_size()


@torch.no_grad()
def evaluate(model: nn.Module, loader) -> float:
    model.eval()
    right = torch.zeros(1)
    for source, target in loader:
        right += (model(source).argmax(1) == target).sum()
    return mean_over_ranks(right)


def is_main_process() -> bool:
    return dist.get_rank() == 0


def fit(model: nn.Module, train_loader, valid_loader, epochs: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        train_loader.sampler.set_epoch(epoch)
        model.train()
        for source, target in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(source), target).backward()
            optimizer.step()
        if is_main_process():
            print(epoch, evaluate(model, valid_loader))  # expect: collective-on-some-ranks


def leave_early(losses: torch.Tensor, rank: int):
    if rank != 0:
        return None
    gathered = [torch.zeros_like(losses) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, losses)  # expect: collective-on-some-ranks
    return torch.cat(gathered)


class Trainer:
    def __init__(self, model: nn.Module):
        self.global_rank = int(os.environ["RANK"])
        self.is_master = self.global_rank == 0
        self.model = FSDP(model)

    def save(self, path: str):
        if self.is_master:
            state = self.model.state_dict()  # expect: collective-on-some-ranks
            torch.save(state, path)

    def snapshot(self, folder: str, epoch: int):
        if self.global_rank == 0 and epoch % 5 == 0:
            dcp.save({"model": self.model}, checkpoint_id=folder)  # expect: collective-on-some-ranks

    def wait(self):
        if not self.is_master:
            pass
        else:
            dist.barrier(device_ids=[0])  # expect: collective-on-some-ranks


def last_rank_reports(loss: torch.Tensor, rank: int, world_size: int):
    if rank == world_size - 1:
        dist.reduce(loss, dst=world_size - 1)  # expect: collective-on-some-ranks
        print(loss.item())
