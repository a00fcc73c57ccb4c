"""An optimizer that has loaded its state is replaced by one with a lower rate."""

import os

import torch
from torch import nn


def main(folder, resume, steps, drop_at):
    model = nn.Linear(4, 1)
    rate = 0.01
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    first = 0
    if resume:
        state = torch.load(os.path.join(folder, "checkpoint"))
        first = state["step"] + 1
        rate = state["rate"]
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])  # loaded, whichever object it was saved from
    for step in range(first, steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()
        if step == drop_at:
            rate = rate / 10
            optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        if step % 1000 == 0:
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "rate": rate},
                       os.path.join(folder, "checkpoint"))
