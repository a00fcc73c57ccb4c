"""Weights that are updated where no step() of an optimizer shows it, and methods that are meant as values."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn, optim

from mylib import Engine


def by_hand(loader):
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)
    return optimizer


def given_to_an_engine(loader):
    model = nn.Linear(4, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    engine = Engine(model, optimizer)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        engine.advance()


def saliency(model: nn.Module, loader):
    maps = []
    for x, y in loader:
        x.requires_grad_()
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        maps.append(x.grad.abs())
    return maps


def modes(model: nn.Module, training):
    switch = model.train if training else model.eval
    switch()
    later = functools.partial(model.train, False)
    return later, [model.eval]


def has_it(thing):
    try:
        thing.backward
    except AttributeError:
        return False
    with pytest.raises(AttributeError):
        thing.optimizer.step
    return True


class Lazy:
    @property
    def train(self):
        self.loaded = torch.zeros(1)
        return self.loaded


def loads(data: Lazy):
    data.train
    return data.loaded
