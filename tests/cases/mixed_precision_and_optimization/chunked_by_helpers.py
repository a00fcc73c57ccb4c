"""Chunks that a helper makes: divided by weight, by the gradient given to backward, by the learning rate."""

import torch
from torch import nn
import torch.nn.functional as F


def split(batch, n):
    return zip(batch["x"].chunk(n), batch["y"].chunk(n))


def a(net, loader, n=4):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in loader:
        opt.zero_grad()
        total = len(batch["x"])
        for x, y in split(batch, n):
            loss = F.cross_entropy(net(x), y, reduction="none").sum() / total
            loss.backward()
        opt.step()


def b(net, loader, n=4):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in loader:
        opt.zero_grad()
        for x, y in split(batch, n):
            F.cross_entropy(net(x), y).backward(torch.tensor(1 / n))
        opt.step()


def c(net, loader, n=4):
    opt = torch.optim.SGD(net.parameters(), lr=0.1 / n)
    for batch in loader:
        opt.zero_grad()
        for x, y in split(batch, n):
            F.cross_entropy(net(x), y).backward()
        opt.step()


def d(net, loader, n=4):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in loader:
        for x, y in split(batch, n):
            opt.zero_grad()
            F.cross_entropy(net(x), y).backward()
            opt.step()


def summed(net, loader, n=4):
    opt = torch.optim.AdamW(net.parameters(), lr=0.1)
    for batch in loader:
        opt.zero_grad()
        for x, y in parts(batch, n_parts=8):
            F.cross_entropy(net(x), y).backward()  # expect: loss-not-averaged-over-accumulation
        opt.step()


def parts(batch, n_parts):
    return zip(batch["x"].chunk(n_parts), batch["y"].chunk(n_parts))
