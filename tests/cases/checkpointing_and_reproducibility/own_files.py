"""A script that trusts the files that it writes itself, and one foreign file."""

import argparse

import numpy as np
import torch
from torch import nn


def save(path, model, optimizer, epoch):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "numpy": np.random.get_state()}
    torch.save(state, path)


def load(path, model, optimizer):
    state = torch.load(path, map_location="cpu", weights_only=False)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    np.random.set_state(state["numpy"])
    return state["epoch"] + 1


def main(model: nn.Module, loader):
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume")
    parser.add_argument("--pretrained")
    args = parser.parse_args()
    optimizer = torch.optim.Adam(model.parameters())
    if args.pretrained:
        model.load_state_dict(torch.load(args.pretrained, weights_only=False))  # expect: pickle-trusted
    start = load(args.resume, model, optimizer) if args.resume else 0
    for epoch in range(start, 10):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        save(f"{epoch}.pt", model, optimizer, epoch)
