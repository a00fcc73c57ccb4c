"""Clipping with a GradScaler, in several wrong orders."""

import torch
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.utils import clip_grad_norm_


def plain(model: nn.Module, loader, epochs, clip=1.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = GradScaler()  # expect: amp-api-deprecated
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            with autocast():  # expect: amp-api-deprecated
                loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            scaler.scale(loss).backward()
            clip_grad_norm_(model.parameters(), clip)  # expect: clip-before-unscale
            scaler.step(optimizer)
            scaler.update()


def unscaled_too_late(model, loader, optimizer, scaler, criterion):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cuda"):
            loss = criterion(model(x), y)
        scaled = scaler.scale(loss)
        scaled.backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)  # expect: clip-before-unscale
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()


def unscaled_in_the_other_arm(model, loader, optimizer, scaler: torch.amp.GradScaler, criterion, log):
    for i, (x, y) in enumerate(loader):
        with torch.autocast("cuda"):
            loss = criterion(model(x), y) / 4
        scaler.scale(loss).backward()
        if (i + 1) % 4:
            continue
        if log:
            scaler.unscale_(optimizer)
            print(sum(p.grad.norm() for p in model.parameters()))
        else:
            clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


class Learner:
    def __init__(self, model: nn.Module, use_amp: bool):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.scaler = GradScaler(enabled=use_amp)  # expect: amp-api-deprecated
        self.use_amp = use_amp

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def update(self):
        for p in self.model.parameters():
            p.grad.data.clamp_(-1, 1)  # expect: clip-before-unscale
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def learn(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            with autocast(enabled=self.use_amp):  # expect: amp-api-deprecated
                loss = nn.functional.mse_loss(self.model(x), y)
            self.backward(loss)
            self.update()


def under_a_limit_of_the_same_settings(model: nn.Module, optimizer, loader, settings):
    scaler = GradScaler(enabled=settings.half)  # expect: amp-api-deprecated
    for i, (x, y) in enumerate(loader):
        scaler.scale(nn.functional.mse_loss(model(x), y)).backward()
        if settings.limit and i % settings.every == 0:
            clip_grad_norm_(model.parameters(), settings.limit)  # expect: clip-before-unscale
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
