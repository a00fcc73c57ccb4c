"""A scheduler that is set to its place by hand."""

import os

import torch
from torch import nn, optim


def train(loader, path="last.pt", finished=False):
    net = nn.Linear(3, 1)
    opt = optim.Adam(net.parameters())
    sch = optim.lr_scheduler.LambdaLR(opt, lambda e: 0.9**e)
    start = 0
    if os.path.exists(path):
        s = torch.load(path, weights_only=True)
        net.load_state_dict(s["net"])
        opt.load_state_dict(s["opt"])
        start = s["epoch"] + 1
        sch.last_epoch = start
    for epoch in range(start, 9):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
        sch.step()
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path + "~")
        os.replace(path + "~", path)
