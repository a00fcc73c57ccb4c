"""Samplers that need no set_epoch, or whose set_epoch may be called out of sight."""

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler
from torch.utils.data.distributed import DistributedSampler

from mylib import hooks


def step_through(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def ordered(model: nn.Module, dataset, epochs):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset, shuffle=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        step_through(model, loader, optimizer)


def decided_elsewhere(model: nn.Module, dataset, epochs, shuffle):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset, shuffle=shuffle))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        step_through(model, loader, optimizer)


def one_epoch(model: nn.Module, dataset):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    step_through(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))


def handed_on(model: nn.Module, dataset, epochs):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, 32, sampler=sampler)
    hooks.at_epoch_start(sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        step_through(model, loader, optimizer)


def on_one_device(model: nn.Module, dataset, epochs):
    loader = DataLoader(dataset, 32, sampler=RandomSampler(dataset))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        step_through(model, loader, optimizer)
