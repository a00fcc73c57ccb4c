"""A state that is kept as the training ends."""

import torch
from torch import nn, optim


def train(model, loader, val, target):
    opt = optim.Adam(model.parameters())
    best = None
    for _e in range(100):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
        if val(model) < target:
            best = model.state_dict()
            break
    if best is None:
        best = model.state_dict()
    torch.save(best, "final.pt")
