"""Parameters that are not trained on purpose, or that reach the optimizer in time."""

import copy

import torch
import torch.nn.functional as F
import torchvision
from torch import nn, optim

from mylib import build_optimizer


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(784, 64)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        return self.fc(F.relu(self.body(x)))


def fit(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def head_first(loader):
    model = torchvision.models.resnet18()
    model.fc = nn.Linear(512, 10)
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    model = model.to("cuda")
    model = torch.compile(model)
    model.decay = 0.9
    model.act = nn.GELU()
    fit(model, loader, optimizer)


def two_stages(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    fit(model, loader, optimizer)
    model.fc = nn.Linear(64, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    fit(model, loader, optimizer)


def by_another_builder(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.fc = nn.Linear(64, 3)
    optimizer = build_optimizer(model)
    fit(model, loader, optimizer)


def growing(loader):
    model = Net()
    for size in (10, 20, 40):
        optimizer = optim.SGD(model.parameters(), lr=0.1)
        fit(model, loader, optimizer)
        model.fc = nn.Linear(64, size)


def another_to_be_looked_at(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    fit(model, loader, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "last.pt")
    model = Net()
    return [model(x) for x, _ in loader]


def average(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    model.average = copy.deepcopy(model.fc)
    fit(model, loader, optimizer)


def either(loader, small):
    if small:
        model = Net()
        optimizer = optim.SGD(model.parameters(), lr=0.1)
    else:
        model = torchvision.models.resnet18()
        model.fc = nn.Linear(512, 10)
        optimizer = optim.Adam(model.parameters())
    fit(model, loader, optimizer)
