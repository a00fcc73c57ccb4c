"""Losses that get what they expect, though a softmax is near."""

import torch
import torch.nn.functional as F
from torch import nn, optim

from mylib import build, losses


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x):
        logits = self.fc(x.flatten(1))
        if not self.training:
            return F.softmax(logits, dim=1)
        return logits


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x):
        logits = self.fc(x)
        return logits, F.softmax(logits, dim=1)


class LogProbabilities(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 10)

    def forward(self, x):
        return F.log_softmax(self.fc(x), dim=1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(64, 64)
        self.value = nn.Linear(64, 10)

    def forward(self, x):
        weights = F.softmax(self.key(x) @ x.transpose(1, 2), dim=-1)
        return (weights @ self.value(x)).mean(1)


class Optional(nn.Module):
    def __init__(self, normalise):
        super().__init__()
        self.fc = nn.Linear(8, 3)
        self.normalise = normalise

    def forward(self, x):
        x = self.fc(x)
        if self.normalise:
            x = torch.softmax(x, dim=1)
        return x


def train(loader):
    model, both, attention, optional = Classifier(), Both(), Attention(), Optional(False)
    criterion = nn.CrossEntropyLoss()
    trained = nn.ModuleList([model, both, attention, optional])
    optimizer = optim.SGD(trained.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        logits, probabilities = both(x)
        loss = criterion(model(x), y) + criterion(logits, y) + criterion(attention(x), y) + criterion(optional(x), y)
        loss.backward()
        optimizer.step()
        print(probabilities.max())


def negative_log_likelihood(loader):
    model, criterion = LogProbabilities(), nn.NLLLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        F.nll_loss(F.log_softmax(model(x), 1), y).backward()
        optimizer.step()


def looked_at_afterwards(model: nn.Module, loader):
    criterion = nn.CrossEntropyLoss()
    hits = 0
    for x, y in loader:
        out = model(x)
        loss = criterion(out, y)
        out = F.softmax(out, dim=1)
        hits += (out.argmax(1) == y).sum().item() + loss.item()
    return hits


def distilled(student: nn.Module, teacher: nn.Module, x, temperature):
    with torch.no_grad():
        goal = F.softmax(teacher(x) / temperature, dim=1)
    return F.cross_entropy(student(x) / temperature, goal)


def binary(loader):
    net = nn.Sequential(nn.Linear(8, 1), nn.Sigmoid())
    criterion = nn.BCELoss()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(net(x), y).backward()
        optimizer.step()


def one_of_two(loader, logits: bool):
    net = nn.Linear(8, 2)
    criterion = nn.CrossEntropyLoss() if logits else nn.NLLLoss()
    for x, y in loader:
        out = net(x) if logits else F.softmax(net(x), 1).log()  # expect: unstable-composition
        criterion(out, y).backward()


def unknown(x, y):
    net, loss = build(), losses.CrossEntropyLoss()
    return loss(F.softmax(net(x), 1), y) + nn.CrossEntropyLoss()(net.predict(x), y)


def chosen(x, y, gumbel):
    net = nn.Linear(8, 2)
    out = net(x)
    if gumbel:
        out = F.softmax(out, 1)
    else:
        out = out * 2
    return F.cross_entropy(out, y)
