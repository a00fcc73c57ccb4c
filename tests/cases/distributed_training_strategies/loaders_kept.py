"""Loaders in dictionaries and behind progress bars, with arguments that a dictionary gives."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tqdm import tqdm


def loaders(table):
    kept = dict(batch_size=32, num_workers=2)
    data = TensorDataset(table[:900])
    return {
        "train": DataLoader(data, shuffle=True, **kept),  # expect: same-data-on-ranks
        "val": DataLoader(TensorDataset(table[900:]), **kept),
    }


def wrapped(net: nn.Module):
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    return DDP(net.to(local), device_ids=[local])


def train(net, table):
    model = wrapped(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    both = loaders(table)
    for _ in range(5):
        for (x,) in both["train"]:
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def train_with_bar(net, data: TensorDataset):
    model = wrapped(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, 32, sampler=DistributedSampler(data))  # expect: sampler-epoch-not-set
    for _ in range(5):
        bar = tqdm(loader)
        for (x,) in bar:
            loss = model(x).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def train_with_given(net, data: TensorDataset, options):
    model = wrapped(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data, shuffle=True, **options)
    for (x,) in loader:
        loss = model(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
