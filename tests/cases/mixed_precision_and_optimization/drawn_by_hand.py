"""Batches that an inner loop draws, and an entropy that a partial function names."""

import functools

import torch
import torch.nn.functional as F

entropy = functools.partial(F.binary_cross_entropy, reduction="none")


def draws(net, loader, every: int):
    opt = torch.optim.AdamW(net.parameters())
    batches = iter(loader)
    for _ in range(1000):
        opt.zero_grad()
        for _ in range(every):
            x, y = next(batches)
            F.mse_loss(net(x), y).backward()  # expect: loss-not-averaged-over-accumulation
        opt.step()


def draws_parts(net, loader, n: int):
    opt = torch.optim.AdamW(net.parameters())
    batches = iter(loader)
    for _ in range(1000):
        opt.zero_grad()
        for _ in range(n):
            x, y = next(batches)
            (F.mse_loss(net(x), y) / n).backward()
        opt.step()


def refused(net, loader, opt, scaler):
    for x, t in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            p = net(x)
            loss = entropy(p, t).mean()  # expect: bce-under-autocast
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()


def after_it(net, loader, opt, scaler):
    for x, t in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            p = net(x)
        loss = entropy(p.float(), t).mean()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
