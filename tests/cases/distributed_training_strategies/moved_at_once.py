"""Wrappers that are moved in the expression that makes them, or by who gets them."""

import os

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def build():
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh())


def at_once():
    device = f"cuda:{int(os.environ['LOCAL_RANK'])}"
    return DDP(build()).to(device)  # expect: moved-after-wrapping


def wrap(model):
    return DDP(model, broadcast_buffers=False)


def by_caller():
    model = wrap(nn.Linear(2, 2))
    model.cuda(int(os.environ["LOCAL_RANK"]))  # expect: moved-after-wrapping
    return model


def wrap_placed(model, device):
    return DDP(model.to(device))


def right(device: torch.device):
    model = wrap_placed(nn.Linear(2, 2), device)
    other = DDP(build().to(device)).to(torch.bfloat16)
    return model.to(device), other
