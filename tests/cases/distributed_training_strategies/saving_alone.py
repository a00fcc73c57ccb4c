"""A script of one process that saves, with distributed evaluation told from it by name."""

import torch
from torch import nn


def main(model: nn.Module, loader, epochs: int):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        torch.save(model.state_dict(), f"epoch{epoch}.pt")
