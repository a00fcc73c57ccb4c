"""A GradScaler for bfloat16, and scalers that are right or off."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast

HALF = torch.bfloat16


def needless(model: nn.Module, loader, optimizer: optim.Optimizer):
    scaler = GradScaler("cuda")  # expect: scaler-with-bf16
    for x, y in loader:
        optimizer.zero_grad(set_to_none=True)
        with autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


class Trainer:
    def __init__(self, net: nn.Module):
        self.net = net
        self.opt = optim.Adam(net.parameters())
        self.scaler = GradScaler("cuda", enabled=True)  # expect: scaler-with-bf16

    def step(self, x, y):
        with autocast(device_type="cuda", dtype=HALF):
            prediction = self.net(x)
            loss = F.l1_loss(prediction, y)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()


# Look-alikes


def off_for_bfloat16(model: nn.Module, loader, optimizer: optim.Optimizer, dtype=torch.bfloat16):
    scaler = GradScaler("cuda", enabled=dtype == torch.float16)
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def either_format(model: nn.Module, loader, optimizer: optim.Optimizer, use_bf16: bool):
    scaler = GradScaler("cuda")
    dtype = torch.bfloat16 if use_bf16 else torch.float16
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", dtype=dtype):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def one_part_in_each(encoder: nn.Module, head: nn.Module, loader, optimizer: optim.Optimizer):
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", dtype=torch.bfloat16):
            features = encoder(x)
        with autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(head(features), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def default_format(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
