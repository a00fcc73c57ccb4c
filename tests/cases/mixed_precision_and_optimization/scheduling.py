"""Schedulers beside a scaler that may skip the step."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR


def every_batch(model: nn.Module, loader, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = OneCycleLR(optimizer, 0.1, epochs=epochs, steps_per_epoch=len(loader))
    scaler = GradScaler("cuda")
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            with autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()  # expect: scheduler-on-skipped-step


# Look-alikes


def every_epoch(model: nn.Module, loader, epochs):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, epochs)
    scaler = GradScaler("cuda")
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            with autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        scheduler.step()


def without_a_scaler(model: nn.Module, loader, steps):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, steps)
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
