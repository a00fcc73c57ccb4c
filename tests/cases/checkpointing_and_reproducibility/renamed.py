"""Written beside and renamed: at every moment there is one whole file."""

import os

import torch
from torch import nn


def save(state, path):
    torch.save(state, path + ".new")
    os.replace(path + ".new", path)


def train(model: nn.Module, loader, epochs, path):
    optimizer = torch.optim.AdamW(model.parameters())
    start = 0
    if os.path.exists(path):
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(start, epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)
