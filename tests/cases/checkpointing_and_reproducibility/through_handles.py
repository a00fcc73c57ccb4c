"""Checkpoints through file handles."""

import os

import torch
from torch import nn


def train(net, batches, path):
    opt = torch.optim.SGD(net.parameters(), 0.1, momentum=0.9)
    done = 0
    if os.path.exists(path):
        with open(path, "rb") as f:
            s = torch.load(f)
        net.load_state_dict(s["net"])
        opt.load_state_dict(s["opt"])
        done = s["done"]
    for n, (x, y) in enumerate(batches):
        if n < done:
            continue
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        if n % 100 == 99:
            with open(path, "wb") as f:
                torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "done": n + 1}, f)  # expect: save-not-atomic
