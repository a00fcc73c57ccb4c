"""Parts that a loop restores one by one: which of them are left out, and where that cannot be told."""

import os

import torch
from torch import nn


class Hooked:
    """Subclasses restore more in a method that is empty here."""

    def __init__(self, model, path):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters())
        self.path = path

    def restore_more(self, state):
        """For subclasses."""

    def run(self, loader):
        start = 0
        if os.path.exists(self.path):
            ckpt = torch.load(self.path, map_location="cpu", weights_only=True)
            self.model.load_state_dict(ckpt["model"])
            self.restore_more(ckpt)
            start = ckpt["epoch"] + 1
        for epoch in range(start, 10):
            for x, y in loader:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
            torch.save({"model": self.model.state_dict(), "epoch": epoch}, self.path + ".tmp")
            os.replace(self.path + ".tmp", self.path)


def grown(loader, epochs, path="last.pt", warm=False):
    """The list of parts gets more of them, and the epochs that are left are counted."""
    net = nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(net.parameters())
    sched = torch.optim.lr_scheduler.StepLR(optimizer, 3)
    parts = [("net", net), ("opt", optimizer)]
    if warm:
        parts.append(("sched", sched))
    done = 0
    if os.path.exists(path):
        ckpt = torch.load(path, map_location="cpu", weights_only=True)
        for key, part in parts:
            part.load_state_dict(ckpt[key])
        done = ckpt["done"]
    for epoch in range(epochs - done):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        sched.step()
        torch.save({**{k: p.state_dict() for k, p in parts}, "done": done + epoch + 1}, path + "~")
        os.replace(path + "~", path)


def pairs(loader, epochs, path="last.pt"):
    net = nn.Linear(4, 1)
    adam = torch.optim.AdamW(net.parameters())
    rate = torch.optim.lr_scheduler.StepLR(adam, 3)
    first = 0
    if os.path.exists(path):
        old = torch.load(path, map_location="cpu", weights_only=True)
        for part, key in ((net, "net"), (adam, "adam"), (rate, "rate")):
            part.load_state_dict(old[key])
        first = old["epoch"] + 1
    for epoch in range(first, epochs):
        for x, y in loader:
            adam.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            adam.step()
        rate.step()
        states = {"net": net.state_dict(), "adam": adam.state_dict(), "rate": rate.state_dict()}
        torch.save({**states, "epoch": epoch}, path + "~")
        os.replace(path + "~", path)
