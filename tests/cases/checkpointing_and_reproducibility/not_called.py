"""States that are named and not called, paths where a state belongs, and what load_state_dict returns."""

import copy
import os
from pathlib import Path

import torch
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x):
        return self.body(x)

    def dump(self, path):
        torch.save(self.state_dict, path)  # expect: state-dict-not-called


class Trainer:
    def __init__(self, folder: str):
        self.folder = folder
        self.net = Net()
        self.optimizer = optim.AdamW(self.net.parameters())
        self.sched = StepLR(self.optimizer, 10)

    def save(self, epoch):
        state = {
            "epoch": epoch,
            "net": self.net.state_dict(),
            "optimizer": self.optimizer.state_dict,  # expect: state-dict-not-called
        }
        state["sched"] = self.sched.state_dict  # expect: state-dict-not-called
        torch.save(state, os.path.join(self.folder, f"{epoch}.pt"))

    def load(self, name: str):
        self.net.load_state_dict(os.path.join(self.folder, name))  # expect: state-dict-not-called

    def restore(self, path):
        state = torch.load(path, map_location="cpu")
        self.net = self.net.load_state_dict(state["net"])  # expect: state-dict-not-called
        self.optimizer.load_state_dict(state["optimizer"])


def snapshot(model: nn.Module, path: Path):
    best = copy.deepcopy(model.state_dict)  # expect: state-dict-not-called
    torch.save(dict(model=best, extra=model.state_dict()), path)


def copied(teacher: nn.Module, student: nn.Module):
    student.load_state_dict(teacher.state_dict)  # expect: state-dict-not-called


def loaded(device):
    model = Net().to(device).load_state_dict(torch.load("net.pt"))  # expect: state-dict-not-called
    return model


def chained(path: Path, device):
    net = Net()
    net.load_state_dict(torch.load(path)).to(device)  # expect: state-dict-not-called
    other = Net()
    other.load_state_dict(path)  # expect: state-dict-not-called
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    optimizer = optimizer.load_state_dict(torch.load("optimizer.pt"))  # expect: state-dict-not-called
    return net, other, optimizer


# Look-alikes.


class Ema(nn.Module):
    """Keeps its state in an attribute, and loads from a path by a method of its own."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.state_dict = {k: v.clone() for k, v in model.state_dict().items()}

    def load_state_dict(self, path):
        self.state_dict = torch.load(path)
        return self

    def dump(self, path):
        torch.save(self.state_dict, path)


class Wrapped:
    """Passes on what it is asked."""

    def __init__(self, model: nn.Module):
        self.model = model
        self.state_dict = self.model.state_dict
        self.load = self.model.load_state_dict

    def load_state_dict(self, state):
        return self.model.load_state_dict(state)


def by_ema(model: nn.Module):
    ema = Ema(model)
    ema = ema.load_state_dict("ema.pt")
    torch.save(ema.state_dict, "ema.pt")
    return ema


def checked(model: nn.Module, optimizer: torch.optim.Optimizer, path, message):
    get_state = model.state_dict
    if hasattr(model, "module"):
        get_state = model.module.state_dict
    torch.save({"model": get_state(), "optimizer": optimizer.state_dict()}, path)
    result = model.load_state_dict(torch.load(path)["model"], strict=False)
    print(result.missing_keys)
    keys = model.load_state_dict(torch.load(message.state_dict)["model"])
    torch.save(message.state_dict, path)
    return keys


def from_anywhere(model: nn.Module, path, state):
    """A parameter that may be either is asked first."""
    if isinstance(state, str):
        state = torch.load(state)
    model.load_state_dict(state)
    state = torch.load("weights.pt") if path is None else path
    model.load_state_dict(state)


def from_a_path(model: nn.Module, checkpoint: str):
    checkpoint = torch.load(checkpoint)
    model.load_state_dict(checkpoint)


def by_option(model: nn.Module, wrapped: nn.parallel.DistributedDataParallel):
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--weights")
    args = parser.parse_args()
    model.load_state_dict(args.weights)  # expect: state-dict-not-called
    torch.save(wrapped.module.state_dict, "module.pt")  # expect: state-dict-not-called
    wrapped.module.load_state_dict(args.weights + "/module.pt")  # expect: state-dict-not-called
