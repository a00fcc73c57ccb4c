"""A state is saved where it is taken, and its name is used again for another."""

import torch
from torch import nn


def main(loader, test, epochs):
    best = 0
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        acc = test(model)
        if acc > best:
            best = acc
            state = {"epoch": epoch, "model": model.state_dict()}
            torch.save(state, "best.pth")
    state = {"model": model.state_dict()}
    torch.save(state, "end.pth")
