"""A scheduler that steps when its state has been saved."""

import os

import torch
from torch import nn
from torch.optim import lr_scheduler


def train(net, loader, out, epochs=20):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
    scheduler = lr_scheduler.StepLR(optimizer, 5)
    begin = 0
    if os.path.exists(out):
        d = torch.load(out)
        net.load_state_dict(d["net"])
        optimizer.load_state_dict(d["optimizer"])
        scheduler.load_state_dict(d["scheduler"])
        begin = d["epoch"] + 1
    for epoch in range(begin, epochs):
        net.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        torch.save(  # expect: resume-off-by-one
            dict(net=net.state_dict(), optimizer=optimizer.state_dict(), scheduler=scheduler.state_dict(), epoch=epoch),
            out + ".t",
        )
        os.replace(out + ".t", out)
        scheduler.step()
