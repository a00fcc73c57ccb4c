"""The scaler's update() and unscale_(): missing, or once too often; and look-alikes."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast

from mylib.amp import finish


def forgotten(model: nn.Module, loader, optimizer: optim.Optimizer, epochs):
    scaler = GradScaler("cuda")
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            with autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)  # expect: scaler-not-updated


def once_an_epoch(model: nn.Module, loader, optimizer: optim.Optimizer, epochs):
    scaler = GradScaler("cuda")
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=True)
            with autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)  # expect: scaler-not-updated
        scaler.update()


class Segmenter:
    def __init__(self, net: nn.Module):
        self.net = net
        self.optim = optim.AdamW(net.parameters(), lr=1e-4)
        self.scaler = GradScaler("cuda", init_scale=2.0**14)
        self.history = {}

    def _update(self, loss):
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optim)  # expect: scaler-not-updated

    def train(self, loader):
        for image, mask in loader:
            self.optim.zero_grad()
            with autocast("cuda"):
                loss = F.binary_cross_entropy_with_logits(self.net(image), mask)
            self._update(loss)
            self.history.update(loss=loss.item())


def unscaled_twice(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler, log):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        log(sum(p.grad.norm() for p in model.parameters()))
        scaler.unscale_(optimizer)  # expect: scaler-not-updated
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


# Look-alikes


def all_of_several(models: list[nn.Module], optimizers: list[optim.Optimizer], loader, scaler: GradScaler):
    for x, y in loader:
        for model, optimizer in zip(models, optimizers):
            optimizer.zero_grad()
            with autocast("cuda"):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
        scaler.update()


def out_of_sight(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        finish(scaler)


class Base:
    def after_step(self):
        self.scaler.update()


class Derived(Base):
    """One step of a loop that another class has."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)
        self.scaler = GradScaler("cuda")

    def train_step(self, x, y):
        self.optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(self.model(x), y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)

    def train(self, loader):
        for x, y in loader:
            self.train_step(x, y)
            self.after_step()


def twice_but_updated(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for first, second in loader:
        for part in (first, second):
            optimizer.zero_grad()
            with autocast("cuda"):
                loss = model(part).mean()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()


def unscaled_by_two_conditions(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler, clip, log):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        if log:
            scaler.unscale_(optimizer)
        if clip and not log:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer)
        scaler.update()


def two_optimizers(body: nn.Module, head: nn.Module, loader, first: optim.SGD, second: optim.Adam, scaler: GradScaler):
    for x, y in loader:
        first.zero_grad()
        second.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(head(body(x)), y)
        scaler.scale(loss).backward()
        scaler.unscale_(first)
        scaler.unscale_(second)
        scaler.step(first)
        scaler.step(second)
        scaler.update()


def one_batch(model: nn.Module, batch, optimizer: optim.Optimizer):
    scaler = GradScaler("cuda")
    with autocast("cuda"):
        loss = model(batch).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
