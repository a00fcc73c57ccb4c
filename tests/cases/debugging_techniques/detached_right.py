"""Losses whose graph is whole, though something near them is detached."""

import torch
import torch.nn.functional as F
from torch import nn, optim

from mylib import compute_loss


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(16, 4)

    def forward(self, x):
        return self.fc(x)


def logged(loader):
    model, criterion = Net(), nn.MSELoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    total, history = torch.tensor(0.0), []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        total += loss.detach()
        history.append(loss.item())
        loss.backward()
        loss = loss.detach()
        optimizer.step()
    return total, history


def only_when_it_is_a_number(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = compute_loss(model, x, y)
        if not isinstance(loss, torch.Tensor):
            loss = torch.tensor(loss, requires_grad=True)
        loss.backward()
        optimizer.step()


def target_without_gradients(loader, gamma=0.99):
    model, target = Net(), Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for state, reward, then in loader:
        with torch.no_grad():
            goal = reward + gamma * target(then).max(1).values
        loss = F.smooth_l1_loss(model(state).max(1).values, goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def summed(loader):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for batch in loader:
        loss = torch.zeros(1)
        scale = torch.tensor(0.5)
        for x, y in batch:
            loss = loss + scale * F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def graph_of_the_input(loader):
    model = Net()
    delta = torch.tensor([0.0] * 16, requires_grad=True)
    optimizer = optim.SGD([delta], lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.no_grad():
            start = model(x)
        loss = F.mse_loss(model(x + delta), start) + F.mse_loss(delta, y)
        loss.backward()
        optimizer.step()


def scalar(loader):
    weight = torch.tensor(1.0, requires_grad=True)
    optimizer = optim.SGD([weight], lr=0.1)
    for _ in loader:
        optimizer.zero_grad()
        weight.backward()
        optimizer.step()


def switched(loader, training):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        with torch.set_grad_enabled(training):
            loss = F.mse_loss(model(x), y)
        if training:
            loss.backward()
            optimizer.step()


def validated_in_between(loader, held_out):
    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            loss = F.mse_loss(model(held_out), y)
        print(loss.item())
