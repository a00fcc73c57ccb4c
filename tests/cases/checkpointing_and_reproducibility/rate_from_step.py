"""A rate that counts from the step of the file."""

import os

import torch
from torch import nn, optim


def train(loader, path="last.pt"):
    net = nn.Linear(3, 1)
    opt = optim.Adam(net.parameters())
    step = 0
    if os.path.exists(path):
        s = torch.load(path, weights_only=True)
        net.load_state_dict(s["net"])
        opt.load_state_dict(s["opt"])
        step = s["step"]
    sch = optim.lr_scheduler.LambdaLR(opt, lambda n: min(1, (step0 + n) / 100))
    step0 = step
    for x, y in loader:
        opt.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        opt.step()
        sch.step()
        step += 1
        if step % 100 == 0:
            torch.save({"net": net.state_dict(), "opt": opt.state_dict(), "step": step}, path + "~")
            os.replace(path + "~", path)
