"""Sources that several tests examine."""

FAULTY = """\
import torch
from torch import nn


def train(model: nn.Module, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
"""
