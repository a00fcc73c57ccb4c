"""A model that stays on the CPU while every batch goes to the device."""

import torch
from torch import nn


def train(train_loader):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)  # expect: device-mismatch
        loss.backward()
        optimizer.step()
    return net


def describe(model):
    return sum(each.numel() for each in model.parameters())
