"""One batch of many comes again."""

import torch
from torch import nn


def save(model, optimizer, extra, path):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    state.update(extra)
    torch.save(state, path)  # expect: save-not-atomic


def main(path, resume, steps):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters())
    first = 0
    if resume:
        state = torch.load(path)
        first = state["step"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    for step in range(first, steps):  # one batch a turn: no epoch anywhere
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        if step % 10000 == 0 and step > 0:
            save(model, optimizer, {"step": step}, path)
