"""Another program copies the checkpoint first."""

import os
import subprocess

import torch
from torch import nn, optim


def train(net, loader, path="last.pt"):
    opt = optim.Adam(net.parameters())
    start = 0
    if os.path.exists(path):
        s = torch.load(path, weights_only=True)
        net.load_state_dict(s["net"])
        opt.load_state_dict(s["opt"])
        start = s["epoch"] + 1
    for epoch in range(start, 9):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
        if os.path.exists(path):
            subprocess.run(["cp", path, path + ".bak"], check=True)
        torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, path)
