"""Steps that go past the GradScaler, and look-alikes that do not."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast
from torch.utils.data import DataLoader

from mylib.amp import unscale_all


def straight(model: nn.Module, loader: DataLoader, epochs: int):
    optimizer = optim.AdamW(model.parameters(), lr=3e-4)
    scaler = GradScaler("cuda")
    for epoch in range(epochs):
        model.train()
        for images, labels in loader:
            images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            optimizer.zero_grad(set_to_none=True)
            with autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(images), labels)
            scaler.scale(loss).backward()
            optimizer.step()  # expect: scaler-bypassed
            scaler.update()


class Trainer:
    def __init__(self, net: nn.Module, lr: float, accumulate: int = 4):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.grad_scaler = torch.amp.GradScaler("cuda")
        self.accumulate = accumulate

    def forward_backward(self, x, y):
        with torch.autocast("cuda", torch.float16):
            loss = F.mse_loss(self.net(x), y) / self.accumulate
        self.grad_scaler.scale(loss).backward()
        return loss.detach()

    def fit(self, loader):
        for i, (x, y) in enumerate(loader):
            self.forward_backward(x, y)
            if (i + 1) % self.accumulate == 0:
                self.opt.step()  # expect: scaler-bypassed
                self.grad_scaler.update()
                self.opt.zero_grad()


def one_of_two(generator: nn.Module, critic: nn.Module, loader, opt_g: optim.Optimizer, opt_d: optim.Optimizer):
    scaler = GradScaler("cuda")
    for real, noise in loader:
        opt_d.zero_grad()
        with autocast("cuda"):
            fake = generator(noise)
            loss_d = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean()
        scaler.scale(loss_d).backward()
        scaler.step(opt_d)
        opt_g.zero_grad()
        with autocast("cuda"):
            loss_g = F.softplus(-critic(fake)).mean()
        scaler.scale(loss_g).backward()
        opt_g.step()  # expect: scaler-bypassed
        scaler.update()


def never_scaled(model, loader, criterion):
    optimizer = torch.optim.Adam(model.parameters())
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = criterion(model(x), y)
        loss.backward()  # expect: scaler-bypassed
        scaler.step(optimizer)
        scaler.update()


def second_loss_never_scaled(actor: nn.Module, critic: nn.Module, replay, actor_opt: optim.Adam, critic_opt: optim.Adam):
    scaler = torch.amp.GradScaler("cuda")
    for step in range(10_000):
        state, action, target = replay.sample()
        with autocast("cuda"):
            value_loss = F.mse_loss(critic(state, action), target)
        critic_opt.zero_grad()
        scaler.scale(value_loss).backward()
        scaler.step(critic_opt)
        with autocast("cuda"):
            policy_loss = -critic(state, actor(state)).mean()
        actor_opt.zero_grad()
        policy_loss.backward()  # expect: scaler-bypassed
        scaler.step(actor_opt)
        scaler.update()


# Look-alikes


def either_way(model: nn.Module, loader, optimizer: optim.Optimizer, scaler=None):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda", enabled=scaler is not None):
            loss = F.cross_entropy(model(x), y)
        if scaler is not None:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()


def by_two_flags(model: nn.Module, loader, optimizer: optim.Optimizer, args: argparse.Namespace):
    scaler = GradScaler("cuda", enabled=args.amp)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        if args.amp:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if args.amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()


def scaler_off(model: nn.Module, loader, optimizer: optim.Optimizer):
    scaler = GradScaler("cuda", enabled=False)
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        optimizer.step()


def unscaled_and_looked_at(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.unscale_(optimizer)
        if all(p.grad.isfinite().all() for p in model.parameters()):
            optimizer.step()
        scaler.update()


def unscaled_out_of_sight(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        unscale_all(scaler, [optimizer])
        optimizer.step()
        scaler.update()


def discriminator_in_full_precision(generator: nn.Module, critic: nn.Module, loader, opt_g, opt_d, scaler: GradScaler):
    for real, noise in loader:
        opt_g.zero_grad()
        with autocast("cuda"):
            loss = -critic(generator(noise)).mean()
        scaler.scale(loss).backward()
        scaler.step(opt_g)
        scaler.update()
        opt_d.zero_grad()
        gap = critic(generator(noise).detach()).mean() - critic(real).mean()
        gap.backward()
        opt_d.step()


def scaled_before(model: nn.Module, loader, optimizer: optim.Optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        loss = scaler.scale(loss)
        loss.backward()
        scaler.step(optimizer)
        scaler.update()


class Wrapped:
    """The scaler behind a call, as libraries have it."""

    def __init__(self, optimizer: optim.Optimizer):
        self._scaler = GradScaler("cuda")
        self.optimizer = optimizer

    def __call__(self, loss, model, clip=None, update=True):
        self._scaler.scale(loss).backward()
        if update:
            self._scaler.unscale_(self.optimizer)
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            self._scaler.step(self.optimizer)
            self._scaler.update()


def features_by_standard_scaler(frame, model: nn.Module, optimizer: optim.Optimizer):
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler()
    data = torch.as_tensor(scaler.fit_transform(frame), dtype=torch.float32)
    for row in data.split(32):
        optimizer.zero_grad()
        model(row).pow(2).mean().backward()
        optimizer.step()
