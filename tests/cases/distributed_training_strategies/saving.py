"""Checkpoints that every rank writes."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def train_one_epoch(model, loader, optimizer, device):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs.to(device)), targets.to(device))
        loss.backward()
        optimizer.step()


def save_checkpoint(model, optimizer, epoch, path):
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
    torch.save(state, path)  # expect: every-rank-saves


def main(args, model: nn.Module, dataset):
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    model = DDP(model.to(device), device_ids=[device])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, 32, sampler=sampler)
    best = 0.0
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, device)
        if epoch % args.save_every == 0:
            save_checkpoint(model, optimizer, epoch, os.path.join(args.output, f"epoch{epoch}.pt"))
        best = max(best, 1.0 / (epoch + 1))
    dist.destroy_process_group()


class Trainer:
    def __init__(self, model: nn.Module, loader, local_rank: int):
        self.model = DDP(model.to(local_rank), device_ids=[local_rank])
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.loader, self.device, self.best = loader, local_rank, float("inf")

    def keep(self, loss: float):
        if loss < self.best:
            self.best = loss
            torch.save(self.model.module.state_dict(), "best.pt")  # expect: every-rank-saves

    def run(self, epochs: int):
        for epoch in range(epochs):
            self.loader.sampler.set_epoch(epoch)
            train_one_epoch(self.model, self.loader, self.optimizer, self.device)
            self.keep(1.0 / (epoch + 1))


@torch.no_grad()
def score(model, loader, device):
    model.eval()
    return sum(model(inputs.to(device)).mean().item() for inputs, _ in loader)


def keep_best(model: nn.Module, loader, valid_loader, epochs: int):
    local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl")
    model = DDP(model.to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = None
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, local_rank)
        current = score(model, valid_loader, local_rank)
        if best is None or current > best:
            best = current
            torch.save(model.module.state_dict(), "best_model.pth")  # expect: every-rank-saves
