"""Steps whose calls stand in the wrong order."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast
from torch.nn.utils import clip_grad_norm_
from torch.optim.lr_scheduler import LRScheduler, StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(784, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(F.relu(self.body(x.flatten(1))))


# cleared too early


def train_epoch(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.zero_grad()  # expect: zeroed-before-step
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(epoch, batch_idx, loss.item())


def in_half_precision(model: nn.Module, loader):
    opt = optim.AdamW(model.parameters(), lr=3e-4)
    scaler = GradScaler("cuda")
    for x, y in loader:
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        clip_grad_norm_(model.parameters(), 1.0)
        opt.zero_grad(set_to_none=True)  # expect: zeroed-before-step
        scaler.step(opt)
        scaler.update()


class Trainer:
    def __init__(self, model: nn.Module, loader, lr):
        self.model, self.loader = model, loader
        self.optimizer = optim.SGD(self.model.parameters(), lr=lr, momentum=0.9)
        self.history = []

    def _update(self, loss):
        self.model.zero_grad()  # expect: zeroed-before-step
        self.optimizer.step()
        self.history.append(loss.item())

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.loader:
                loss = F.mse_loss(self.model(x), y)
                loss.backward()
                self._update(loss)


class Runner:
    def __init__(self, cfg):
        self.model = Net()
        self.optimizer = self.build(cfg)
        self.schedule = optim.lr_scheduler.ExponentialLR(self.optimizer, 0.9)

    def build(self, cfg):
        return optim.Adam(self.model.parameters(), lr=cfg.lr)

    def backward(self, loss):
        loss.backward()
        self.optimizer.zero_grad()  # expect: zeroed-before-step

    def epoch(self, loader):
        for x, y in loader:
            self.backward(F.cross_entropy(self.model(x), y))
            self.optimizer.step()

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.schedule.step()  # expect: scheduler-before-optimizer
            self.epoch(loader)


def gan(generator: nn.Module, critic: nn.Module, loader):
    opt_g = optim.Adam(generator.parameters(), lr=2e-4)
    opt_c = optim.Adam(critic.parameters(), lr=2e-4)
    for real in loader:
        z = torch.randn(len(real), 64)
        opt_c.zero_grad()
        (critic(generator(z).detach()).mean() - critic(real).mean()).backward()
        opt_c.step()
        loss_g = -critic(generator(z)).mean()
        loss_g.backward()
        opt_g.zero_grad()  # expect: zeroed-before-step
        opt_g.step()


# clipped too late


def language_model(model: nn.Module, loader, epochs, max_norm):
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()
            optimizer.step()
            clip_grad_norm_(model.parameters(), max_norm)  # expect: clip-after-step


class Recurrent:
    def __init__(self, net):
        self.net = net
        self.opt = optim.RMSprop(self.net.parameters())
        self.scaler = GradScaler("cuda")

    def step(self, x, y):
        loss = F.mse_loss(self.net(x), y)
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        self.scaler.step(self.opt)
        norm = nn.utils.clip_grad_norm_(self.net.parameters(), 0.5)  # expect: clip-after-step
        self.scaler.update()
        return norm

    def run(self, loader):
        for x, y in loader:
            self.step(x, y)


# the schedule first


def main(loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    args = parser.parse_args()
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(args.epochs):
        scheduler.step()  # expect: scheduler-before-optimizer
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(epoch)


def each_batch(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    cosine = optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=len(loader))
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        cosine.step()  # expect: scheduler-before-optimizer
        optimizer.step()


def annotated(model: nn.Module, loader, optimizer: optim.Optimizer, schedule: LRScheduler):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        schedule.step()  # expect: scheduler-before-optimizer
        optimizer.step()


class Experiment:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.optim = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        self.lr_schedule = optim.lr_scheduler.MultiStepLR(self.optim, milestones=[30, 60])

    def epoch(self):
        for x, y in self.loader:
            self.optim.zero_grad(set_to_none=True)
            F.cross_entropy(self.model(x), y).backward()
            self.optim.step()

    def run(self, epochs):
        for _ in range(epochs):
            self.lr_schedule.step()  # expect: scheduler-before-optimizer
            self.epoch()
