"""A file of several states, and which of them is loaded."""

import os

import torch
from torch import nn


class Denoiser:
    path = "run/denoiser.pt"

    def __init__(self):
        self.net = nn.Sequential(nn.Conv1d(1, 8, 3), nn.SiLU(), nn.Conv1d(8, 1, 3))
        self.opt = torch.optim.AdamW(self.net.parameters())

    def save(self, step):
        state = {"net": self.net.state_dict(), "opt": self.opt.state_dict(), "step": step}
        torch.save(state, self.path + ".tmp")
        os.replace(self.path + ".tmp", self.path)

    def export(self):
        torch.save({"ema": self.net.state_dict(), "updates": 3}, self.path)

    def sample(self):
        weights = torch.load(self.path, map_location="cpu", weights_only=True)
        self.net.load_state_dict(weights)  # expect: keys-mismatched
        return self.net(torch.randn(1, 1, 50))


def keep(model: nn.Module, optimizer, file="tagger.pt"):
    torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict()), file)


def bring_back(model: nn.Module, file="tagger.pt"):
    blob = torch.load(file, weights_only=True)
    model.load_state_dict(blob["state_dict"])  # expect: keys-mismatched


def tag():
    net = nn.LSTM(4, 8)
    keep(net, torch.optim.Adam(net.parameters()))
    bring_back(net)


# Look-alikes.


def entry(net: nn.Module):
    torch.save({"ema": net.state_dict(), "updates": 3}, "entry.pt")
    net.load_state_dict(torch.load("entry.pt", weights_only=True)["ema"])


def either(net: nn.Module):
    torch.save({"model": net.state_dict(), "epoch": 3}, "either.pt")
    state = torch.load("either.pt", weights_only=True)
    if "model" in state:
        state = state["model"]
    net.load_state_dict(state)


def bare(net: nn.Module):
    torch.save(net.state_dict(), "bare.pt")
    net.load_state_dict(torch.load("bare.pt", weights_only=True))


def two_files(net: nn.Module):
    torch.save({"model": net.state_dict(), "epoch": 3}, "full.pt")
    torch.save(net.state_dict(), "weights.pt")
    net.load_state_dict(torch.load("weights.pt", weights_only=True))


def filled(net: nn.Module):
    state = {"epoch": 3, "net": net.state_dict()}
    state["weights"] = net.state_dict()
    torch.save(state, "filled.pt")
    net.load_state_dict(torch.load("filled.pt", weights_only=True)["weights"])


def by_hand(net: nn.Module):
    torch.save({"0.weight": net[0].weight, "0.bias": net[0].bias}, "hand.pt")
    net.load_state_dict(torch.load("hand.pt", weights_only=True))
