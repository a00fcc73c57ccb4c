"""What does not belong inside an autocast region: backward, and BCELoss on CUDA; and look-alikes."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast


def whole_step(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()  # expect: backward-in-autocast
        scaler.step(optimizer)
        scaler.update()


class Trainer:
    def __init__(self, net: nn.Module):
        self.net = net
        self.opt = optim.Adam(net.parameters())
        self.criterion = nn.BCELoss()
        self.scaler = GradScaler("cuda")

    def propagate(self, loss):
        self.scaler.scale(loss).backward()  # expect: backward-in-autocast
        self.scaler.step(self.opt)
        self.scaler.update()

    def fit(self, loader):
        for x, y in loader:
            self.opt.zero_grad()
            with torch.autocast("cuda"):
                chance = torch.sigmoid(self.net(x))
                loss = self.criterion(chance, y)  # expect: bce-under-autocast
                self.propagate(loss)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 1), nn.Sigmoid())

    def forward(self, x):
        return self.body(x)


adversarial = nn.BCELoss()


def gan(generator: nn.Module, loader, opt: optim.Optimizer, scaler: GradScaler):
    critic = Critic()
    for noise in loader:
        opt.zero_grad()
        with autocast("cuda", dtype=torch.float16):
            valid = critic(generator(noise))
            loss = adversarial(valid, torch.ones_like(valid))  # expect: bce-under-autocast
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


def masked_bce(chance, target, mask):
    return (F.binary_cross_entropy(chance, target, reduction="none") * mask).mean()  # expect: bce-under-autocast


def masked(model: nn.Module, loader, opt: optim.Optimizer, scaler: GradScaler):
    for x, y, mask in loader:
        opt.zero_grad()
        with autocast("cuda"):
            loss = masked_bce(model(x).sigmoid(), y, mask)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


# Look-alikes


def left_first(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            logits = model(x)
            loss = F.binary_cross_entropy_with_logits(logits, y)
            with autocast("cuda", enabled=False):
                loss = loss + F.binary_cross_entropy(logits.float().sigmoid(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def outside(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    criterion = nn.BCELoss()
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            chance = model(x).sigmoid()
        loss = criterion(chance.float(), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def on_the_cpu(model: nn.Module, loader, optimizer: optim.Optimizer):
    criterion = nn.BCELoss()
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(x).sigmoid(), y)
        loss.backward()
        optimizer.step()


def disabled(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", enabled=False):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
        optimizer.step()
