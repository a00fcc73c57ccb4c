"""States of wrapped and bare models, saved and loaded in one script."""

import os

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


def resume_then_wrap(loader, rank, path):
    model = Net().to(rank)
    if os.path.exists(path):
        model.load_state_dict(torch.load(path, map_location="cpu")["model"])  # expect: keys-mismatched
    model = DDP(model, device_ids=[rank])
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
    torch.save({"model": model.state_dict()}, path)  # expect: every-rank-saves


def compiled(loader, path):
    net = Net()
    fast = torch.compile(net)
    for x, y in loader:
        nn.functional.mse_loss(fast(x), y).backward()
    torch.save(fast.state_dict(), path)
    again = Net()
    again.load_state_dict(torch.load(path))  # expect: keys-mismatched
    return again


class Trainer:
    def __init__(self, rank):
        self.net = Net().to(rank)
        self.ddp = DDP(self.net, device_ids=[rank])

    def save(self):
        torch.save({"net": self.net.state_dict(), "rank": 0}, "net.pt")  # who calls this is out of sight

    def load(self):
        state = torch.load("net.pt", map_location="cpu")
        self.ddp.load_state_dict(state["net"])  # expect: keys-mismatched


# Look-alikes.


def by_the_inner(loader, rank, path):
    model = Net().to(rank)
    if os.path.exists(path):
        model.load_state_dict(torch.load(path, map_location="cpu")["model"])
    ddp = DDP(model, device_ids=[rank])
    torch.save({"model": ddp.module.state_dict()}, path)  # expect: every-rank-saves
    torch.save({"model": model.state_dict()}, path)  # expect: every-rank-saves


def wrapped_both_times(loader, rank, path):
    model = DDP(Net().to(rank), device_ids=[rank])
    if os.path.exists(path):
        model.load_state_dict(torch.load(path, map_location="cpu")["model"])
    torch.save({"model": model.state_dict()}, path)  # expect: every-rank-saves


def wrapped_perhaps(path, distributed, rank):
    model = Net()
    if distributed:
        model = DDP(model)
    torch.save({"model": model.state_dict()}, path)  # expect: every-rank-saves
    other = Net()
    other.load_state_dict(torch.load(path)["model"])


def another_file(path, rank):
    model = Net()
    model.load_state_dict(torch.load("pretrained.pt"))
    model = DDP(model)
    torch.save(model.state_dict(), path)  # expect: every-rank-saves


def in_place(path):
    model = Net()
    model.compile()
    torch.save(model.state_dict(), path)
    Net().load_state_dict(torch.load(path))


def write(model, folder):
    torch.save(model.state_dict(), "parallel.pt")  # expect: every-rank-saves


def train_parallel(loader):
    model = Net()
    model = nn.parallel.DistributedDataParallel(model)
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
    write(model, "out")


def predict(x):
    model = Net()
    model.load_state_dict(torch.load("parallel.pt"))  # expect: keys-mismatched
    return model.eval()(x)


def imported(loader, rank, build_model):
    model = build_model("large").to(rank)
    if os.path.exists("imported.pt"):
        model.load_state_dict(torch.load("imported.pt", map_location="cpu"))  # expect: keys-mismatched
    model = DDP(model, device_ids=[rank])
    for x, y in loader:
        nn.functional.mse_loss(model(x), y).backward()
    torch.save(model.state_dict(), "imported.pt")  # expect: every-rank-saves
