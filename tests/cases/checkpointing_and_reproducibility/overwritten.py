"""The file that a training resumes from is written in place, beside others, or beside and then renamed."""

import os

import torch
from torch import nn

from mylib.engine import train_one_epoch

LAST = "checkpoints/last.pt"


def in_place(model: nn.Module, loader, epochs):
    optimizer = torch.optim.AdamW(model.parameters())
    start = 0
    if os.path.exists(LAST):
        state = torch.load(LAST, map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(start, epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, LAST)  # expect: save-not-atomic


class Trainer:
    def __init__(self, model: nn.Module, path):
        self.model, self.path, self.start = model, path, 0
        self.optimizer = torch.optim.Adam(model.parameters())
        if os.path.exists(self.path):
            self.load()

    def load(self):
        state = torch.load(self.path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.start = state["step"] + 1

    def save(self, step):
        state = dict(model=self.model.state_dict(), optimizer=self.optimizer.state_dict(), step=step)
        torch.save(state, self.path)  # expect: save-not-atomic

    def run(self, batches, steps):
        for step in range(self.start, steps):
            x, y = next(batches)
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            if step % 100 == 99:
                self.save(step)


# Look-alikes.


def best_only(model: nn.Module, loader, val, epochs, path):
    """Nothing resumes from here: the best weights are read back when the training is over."""
    optimizer = torch.optim.AdamW(model.parameters())
    best = 0.0
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        acc = val(model)
        if acc > best:
            best = acc
            torch.save({"model": model.state_dict(), "epoch": epoch}, path)
    model.load_state_dict(torch.load(path)["model"])
    return model


def one_for_each(model: nn.Module, loader, epochs, resume):
    optimizer = torch.optim.AdamW(model.parameters())
    start = 0
    if resume:
        state = torch.load(resume)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["epoch"] + 1
    for epoch in range(start, epochs):
        train_one_epoch(model, loader, optimizer)
        resume = f"checkpoints/{epoch:04d}.pt"
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, resume)


def with_others(model: nn.Module, loader, epochs, latest):
    optimizer = torch.optim.AdamW(model.parameters())
    state = torch.load(latest)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    for epoch in range(state["epoch"] + 1, epochs):
        train_one_epoch(model, loader, optimizer)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, latest)
        if epoch % 10 == 0:
            torch.save(state, f"epoch-{epoch}.pt")


def once(model: nn.Module, loader, optimizer, path):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    train_one_epoch(model, loader, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)


def to_latest(model: nn.Module, loader, epochs, folder):
    latest = os.path.join(folder, "latest.pt")
    optimizer = torch.optim.AdamW(model.parameters())
    start = read_latest(latest, model, optimizer) if os.path.exists(latest) else 0
    for epoch in range(start, epochs):
        train_one_epoch(model, loader, optimizer)
        write_latest(latest, model, optimizer, epoch)


def read_latest(path, model, optimizer):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1


def write_latest(path, model, optimizer, epoch):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path)  # expect: save-not-atomic


def keep_best(model: nn.Module, loader, val, epochs, file):
    optimizer = torch.optim.AdamW(model.parameters())
    best = 0.0
    for epoch in range(epochs):
        train_one_epoch(model, loader, optimizer)
        if val(model) > best:
            best = val(model)
            torch.save({"state": model.state_dict(), "epoch": epoch}, file)


def all_of_it(loader, val, file):
    model = nn.Linear(3, 2)
    keep_best(model, loader, val, 10, file)
    model.load_state_dict(torch.load(file)["state"])
    return val(model)
