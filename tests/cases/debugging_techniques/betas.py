"""Decay rates of Adam in the wrong order, by whatever way they come."""

import argparse
from dataclasses import dataclass

import bitsandbytes
import torch
import torch.nn.functional as F
from lion_pytorch import Lion
from torch import nn


@dataclass
class Config:
    beta1: float = 0.999
    beta2: float = 0.9


def fit(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def by_position(loader):
    model = nn.Linear(8, 4)
    fit(model, torch.optim.Adam(model.parameters(), 1e-3, (0.999, 0.9)), loader)  # expect: betas-swapped


def by_a_configuration(loader):
    model, config = nn.Linear(8, 4), Config()
    optimizer = torch.optim.AdamW(model.parameters(), betas=(config.beta1, config.beta2))  # expect: betas-swapped
    fit(model, optimizer, loader)


def of_a_group(loader):
    model = nn.Linear(8, 4)
    groups = [{"params": [model.weight], "betas": [0.98, 0.9]}, {"params": [model.bias]}]
    optimizer = torch.optim.NAdam(groups)  # expect: betas-swapped
    fit(model, optimizer, loader)


def quantised(loader):
    model = nn.Linear(8, 4)
    optimizer = bitsandbytes.optim.PagedAdamW8bit(model.parameters(), betas=(0.99, 0.9))  # expect: betas-swapped
    fit(model, optimizer, loader)


def in_order(loader):
    model = nn.Linear(8, 4)
    fit(model, torch.optim.Adam(model.parameters(), betas=(0.5, 0.999)), loader)


def equal_or_close(loader):
    model = nn.Linear(8, 4)
    fit(model, torch.optim.Adam(model.parameters(), betas=(0.9, 0.9)), loader)
    fit(model, torch.optim.AdamW(model.parameters(), betas=(0.95, 0.9)), loader)


def without_one_of_them(loader):
    model = nn.Linear(8, 4)
    fit(model, torch.optim.Adam(model.parameters(), betas=(0.0, 0.99)), loader)
    fit(model, torch.optim.Adam(model.parameters(), betas=(0.9, 0.0)), loader)
    fit(model, torch.optim.Adam(model.parameters(), betas=(0.9, 0.5)), loader)


def of_lion(loader):
    model = nn.Linear(8, 4)
    fit(model, Lion(model.parameters(), betas=(0.99, 0.9)), loader)


def as_asked_for(loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--beta1", type=float, required=True)
    options = parser.parse_args()
    model = nn.Linear(8, 4)
    fit(model, torch.optim.Adam(model.parameters(), betas=(options.beta1, 0.95)), loader)
