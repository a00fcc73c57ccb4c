"""Epochs that a while loop counts, and where it goes on."""

import os

import torch
from torch import nn


def train(model, batches, n_epochs=5, file="lm_last.pt"):
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    epoch = 0
    if os.path.exists(file):
        state = torch.load(file, map_location="cpu", weights_only=True)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        epoch = state["epoch"]  # expect: resume-off-by-one
    while epoch < n_epochs:
        for ids in batches:
            loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch}, file + ".tmp")
        os.replace(file + ".tmp", file)
        epoch += 1


class Skipping:
    def __init__(self, net, file):
        self.net, self.file = net, file
        self.opt = torch.optim.Adam(net.parameters())
        self.epoch = 0

    def restore(self):
        state = torch.load(self.file, weights_only=True)
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])
        self.epoch = state["epoch"] + 1  # expect: resume-off-by-one

    def store(self):
        state = {"net": self.net.state_dict(), "opt": self.opt.state_dict(), "epoch": self.epoch}
        torch.save(state, self.file + ".tmp")
        os.replace(self.file + ".tmp", self.file)

    def fit(self, loader, epochs):
        if os.path.exists(self.file):
            self.restore()
        while self.epoch < epochs:
            for x, y in loader:
                self.opt.zero_grad()
                nn.functional.mse_loss(self.net(x), y).backward()
                self.opt.step()
            self.epoch += 1
            self.store()


# Look-alikes.


class Counting:
    def __init__(self, net, file):
        self.net, self.file = net, file
        self.opt = torch.optim.Adam(net.parameters())
        self.epoch = 0

    def restore(self):
        state = torch.load(self.file, weights_only=True)
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])
        self.epoch = state["epoch"]

    def store(self):
        state = {"net": self.net.state_dict(), "opt": self.opt.state_dict(), "epoch": self.epoch}
        torch.save(state, self.file + ".tmp")
        os.replace(self.file + ".tmp", self.file)

    def fit(self, loader, epochs):
        if os.path.exists(self.file):
            self.restore()
        while self.epoch < epochs:
            for x, y in loader:
                self.opt.zero_grad()
                nn.functional.mse_loss(self.net(x), y).backward()
                self.opt.step()
            self.epoch += 1
            self.store()


def by_steps(model, batches, total, file):
    opt = torch.optim.Adam(model.parameters())
    step = 0
    if os.path.exists(file):
        state = torch.load(file, weights_only=True)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        step = state["step"] + 1
    while step < total:
        x, y = next(batches)
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        opt.step()
        if step % 1000 == 0:
            torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "step": step}, file + ".tmp")
            os.replace(file + ".tmp", file)
        step += 1
