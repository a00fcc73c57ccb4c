"""Loops that clear their gradients in some way, or cannot be judged from here."""

import torch
import torch.nn.functional as F
from torch import nn, optim

from mylib.optim import build_optimizer, clear, step_all


def accumulated(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for i, (x, y) in enumerate(loader):
        (F.cross_entropy(model(x), y) / 4).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()


def through_the_model(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        model.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def by_hand(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        for p in model.parameters():
            p.grad = None
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def by_hand_in_place(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        for p in model.parameters():
            p.grad.data.zero_()


def with_a_closure(model: nn.Module, loader):
    optimizer = optim.LBFGS(model.parameters())
    for x, y in loader:

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def update(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def by_a_helper(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        update(optimizer, F.cross_entropy(model(x), y))


def out_of_sight(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        clear(optimizer)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def of_unknown_make(model: nn.Module, loader, config):
    optimizer = build_optimizer(model, config)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


class Base:
    def prepare(self): ...


class Runner(Base, step_all):
    def __init__(self, model: nn.Module):
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def run(self, loader):
        for x, y in loader:
            self.before_batch()
            F.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()


def one_step(model: nn.Module, optimizer: optim.Optimizer, x, y):
    """Whoever calls it may clear."""
    F.cross_entropy(model(x), y).backward()
    optimizer.step()


def attack(model: nn.Module, images, labels):
    """Gradients of the input, no optimizer at all."""
    for _ in range(10):
        images = images.detach().requires_grad_()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        images = images + 0.01 * images.grad.sign()
    return images


def new_parameters_each_time(targets):
    for target in targets:
        guess = torch.zeros(3, requires_grad=True)
        optimizer = optim.SGD([guess], lr=0.1)
        (guess - target).pow(2).sum().backward()
        optimizer.step()


def environment(model: nn.Module, env, optimizer: optim.Optimizer):
    for step in range(100):
        observation, reward = env.step(model(torch.zeros(3)))
        (-reward).backward()
