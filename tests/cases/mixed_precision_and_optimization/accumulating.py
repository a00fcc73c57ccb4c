"""Gradients added up over several batches: what must run only when a step is made, and look-alikes."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast


def updated_too_often(model: nn.Module, loader, optimizer: optim.SGD, accumulation_steps=4):
    scaler = GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y) / accumulation_steps
        scaler.scale(loss).backward()
        if (i + 1) % accumulation_steps == 0:
            scaler.step(optimizer)
            optimizer.zero_grad()
        scaler.update()  # expect: scaler-touched-mid-accumulation


class Finetuner:
    def __init__(self, net: nn.Module, args: argparse.Namespace):
        self.net, self.args = net, args
        self.opt = optim.AdamW(net.parameters(), lr=args.lr)
        self.scaler = GradScaler("cuda")

    def step(self):
        self.scaler.step(self.opt)
        self.scaler.update()
        self.opt.zero_grad(set_to_none=True)

    def fit(self, loader):
        for index, batch in enumerate(loader, start=1):
            with autocast("cuda", dtype=torch.float16):
                loss = self.net(batch).mean()
            loss = loss / self.args.accumulate
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.opt)  # expect: scaler-touched-mid-accumulation
            nn.utils.clip_grad_norm_(self.net.parameters(), self.args.clip)
            if index % self.args.accumulate == 0:
                self.step()


def summed(model: nn.Module, loader, epochs, accum_iter=8):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        optimizer.zero_grad()
        for step, (x, y) in enumerate(loader):
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # expect: loss-not-averaged-over-accumulation
            if (step + 1) % accum_iter == 0 or step + 1 == len(loader):
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()


def summed_in_an_inner_loop(model: nn.Module, batches, optimizer: optim.AdamW, grad_accum_steps: int):
    scaler = GradScaler("cuda")
    for step in range(1000):
        for micro in range(grad_accum_steps):
            x, y = next(batches)
            with autocast("cuda"):
                logits = model(x)
                loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
            scaler.scale(loss).backward()  # expect: loss-not-averaged-over-accumulation
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)


# Look-alikes


def right(model: nn.Module, loader, optimizer: optim.SGD, every=4):
    scaler = GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
            loss = loss / every
        scaler.scale(loss).backward()
        if (i + 1) % every == 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def right_by_continue(model: nn.Module, loader, optimizer: optim.SGD, every=4):
    scaler = GradScaler("cuda")
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss /= every
        scaler.scale(loss).backward()
        if (i + 1) % every:
            continue
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def divided_by_hand(model: nn.Module, loader, optimizer: optim.SGD, every):
    for i, (x, y) in enumerate(loader):
        F.cross_entropy(model(x), y).backward()
        if (i + 1) % every == 0:
            for p in model.parameters():
                p.grad.div_(every)
            optimizer.step()
            optimizer.zero_grad()


def rate_divided(model: nn.Module, loader, every, lr):
    optimizer = optim.SGD(model.parameters(), lr=lr / every)
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if (i + 1) % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def not_added_up(model: nn.Module, loader, optimizer: optim.SGD, every):
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        if (i + 1) % every == 0:
            print(i, loss.item())


def critic_more_often(generator: nn.Module, critic: nn.Module, loader, opt_g: optim.Adam, opt_d: optim.Adam, n_critic=5):
    for i, (real, noise) in enumerate(loader):
        opt_d.zero_grad()
        gap = critic(generator(noise).detach()).mean() - critic(real).mean()
        gap.backward()
        opt_d.step()
        opt_g.zero_grad()
        if i % n_critic == 0:
            loss = -critic(generator(noise)).mean()
            loss.backward()
            opt_g.step()


def averaged_by_tokens(model: nn.Module, batches, optimizer: optim.AdamW, grad_accum_steps: int):
    for step in range(1000):
        micro = [next(batches) for _ in range(grad_accum_steps)]
        tokens = sum((y != -100).sum() for _, y in micro)
        for x, y in micro:
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") / tokens
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def several_tasks(model: nn.Module, loaders, optimizer: optim.AdamW):
    for batches in zip(*loaders):
        for task, (x, y) in enumerate(batches):
            loss = F.cross_entropy(model(x, task), y)
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def weighed(model: nn.Module, loader, optimizer: optim.AdamW, args: argparse.Namespace):
    factor = args.factor
    for i, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x), y) * factor
        loss.backward()
        if (i + 1) % args.every == 0:
            optimizer.step()
            optimizer.zero_grad()
