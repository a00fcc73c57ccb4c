"""Replicated models whose ranks all read the whole data set."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torchvision import datasets, transforms


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    train_set = datasets.CIFAR10("data", train=True, transform=transforms.ToTensor())
    loader = DataLoader(train_set, batch_size=128, shuffle=True, num_workers=4)  # expect: same-data-on-ranks
    model = DDP(nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(local_rank), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        for images, labels in loader:
            images, labels = images.to(local_rank), labels.to(local_rank)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


class Texts(Dataset):
    def __init__(self, lines):
        self.lines = lines

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        return self.lines[index]


class Trainer:
    def __init__(self, model: nn.Module, lines, local_rank: int):
        self.device = local_rank
        self.loader = self.make_loader(Texts(lines))
        self.model = DDP(model.to(local_rank), device_ids=[local_rank])
        self.optimizer = torch.optim.AdamW(self.model.parameters())

    def make_loader(self, dataset):
        return DataLoader(dataset, batch_size=16, shuffle=True, drop_last=True)  # expect: same-data-on-ranks

    def train(self):
        for batch in self.loader:
            self.optimizer.zero_grad()
            loss = self.model(batch.to(self.device)).mean()
            loss.backward()
            self.optimizer.step()


def in_order(model: nn.Module, inputs: torch.Tensor, targets: torch.Tensor):
    loader = DataLoader(TensorDataset(inputs, targets), 32, sampler=None)  # expect: same-data-on-ranks
    replica = DDP(model)
    optimizer = torch.optim.SGD(replica.parameters(), lr=0.1)
    for source, target in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(replica(source), target).backward()
        optimizer.step()


class Made(Dataset):
    def __init__(self, size: int):
        self.inputs = torch.randn(size, 8)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        return self.inputs[index]


def by_steps(model: nn.Module, steps: int):
    loader = DataLoader(Made(1000), batch_size=32, shuffle=True)  # expect: same-data-on-ranks
    model = DDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(loader)
    for _ in range(steps):
        try:
            batch = next(batches)
        except StopIteration:
            batches = iter(loader)
            batch = next(batches)
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
