"""What losses are given, and how often they are gone back from."""

import copy

import torch
import torch.nn.functional as F
from torch import nn


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


class Positive(Scores):
    def forward(self, x):
        return torch.relu(super().forward(x))  # expect: wrong-loss-input


def of_probabilities(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.nll_loss(F.softmax(model(x), dim=1), y).backward()  # expect: wrong-loss-input
        optimizer.step()


def of_log_probabilities(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.nll_loss(F.log_softmax(model(x), dim=1), y).backward()
        optimizer.step()


def of_scores(loader):
    model, criterion = Scores(), nn.NLLLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()  # expect: wrong-loss-input
        optimizer.step()


def of_what_is_positive(loader):
    model = Positive()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def of_what_may_be_positive(loader):
    """A density or a count is fitted, and no class chosen."""
    model = Positive()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()


def of_no_probabilities(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.binary_cross_entropy(model(x), y).backward()  # expect: wrong-loss-input
        optimizer.step()


def gone_back_from_twice(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        loss.backward()  # expect: backward-twice
        optimizer.step()


def gone_back_from_twice_on_purpose(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward(retain_graph=True)
        norm = model.head.weight.grad.norm()
        loss.backward()
        optimizer.step()
        print(norm)


def copied_when_it_is_optimized(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model = copy.deepcopy(model)  # expect: parameters-not-in-optimizer
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def copied_for_an_average(loader):
    model = Scores()
    average = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, 0.01)
    return average


def with_a_term_that_cannot_learn(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        size = F.mse_loss(torch.round(out), y.float())  # expect: no-gradient-by-design
        (F.cross_entropy(out, y) + 0.1 * size).backward()
        optimizer.step()


def with_a_figure_beside_the_loss(loader):
    model = Scores()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        print(F.mse_loss(torch.round(out), y.float()))
        F.cross_entropy(out, y).backward()
        optimizer.step()
