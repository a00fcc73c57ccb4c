"""Each epoch has a sampler or a seed of its own, or there is one epoch only."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def seeded(model: nn.Module, optimizer: torch.optim.Optimizer, dataset, epochs):
    for epoch in range(epochs):
        loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset, seed=17 + epoch))
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def batches(dataset, number):
    return DataLoader(dataset, 32, sampler=DistributedSampler(dataset, seed=number))


def seeded_in_a_function(model: nn.Module, optimizer: torch.optim.Optimizer, dataset, epochs):
    for epoch in range(epochs):
        for x, y in batches(dataset, epoch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def left_after_one_epoch(model: nn.Module, optimizer: torch.optim.Optimizer, dataset):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        break


def left_early(model: nn.Module, optimizer: torch.optim.Optimizer, dataset, enough):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset, seed=3))  # expect: sampler-epoch-not-set
    while True:
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        if enough():
            break
