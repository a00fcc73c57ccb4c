"""Loops whose gradients are cleared where the loop itself does not say it."""

import contextlib
from functools import wraps

import torch
import torch.nn.functional as F
from torch import nn, optim
from transformers import get_linear_schedule_with_warmup

from mylib.train import refresh


def build():
    layer = nn.Linear(4, 4)
    return layer, optim.SGD(layer.parameters(), lr=0.1)


def built_by_a_function_in_each_turn(seeds):
    for seed in seeds:
        torch.manual_seed(seed)
        layer, optimizer = build()
        layer(torch.randn(2, 4)).sum().backward()
        optimizer.step()


def tried_out_on_one_batch(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        break


def returns_after_one_batch(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        return model


def filled(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        for parameter in model.parameters():
            parameter.grad.data.fill_(0)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def multiplied(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad.mul_(0.0)


def all_elements_set(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad[:] = 0


def set_by_name(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        for parameter in model.parameters():
            setattr(parameter, "grad", None)


def given_to_plugins_before(model: nn.Module, loader, plugins):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for plugin in plugins:
        plugin.attach(model, optimizer)
    for x, y in loader:
        for plugin in plugins:
            plugin.begin()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def model_given_for_its_effect(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        refresh(model)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


def batches(loader, optimizer):
    for batch in loader:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad = None
        yield batch


def by_the_generator_of_batches(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches(loader, optimizer):
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


class Fresh(contextlib.AbstractContextManager):
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def start(self):
        self.optimizer.param_groups[0]["params"][0].grad = None


def by_a_context_manager(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    fresh = Fresh(optimizer)
    for x, y in loader:
        with fresh:
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


def prepared(function):
    @wraps(function)
    def inner(self, *batch):
        for parameter in self.model.parameters():
            parameter.grad = None
        return function(self, *batch)

    return inner


class Learner:
    def __init__(self, model: nn.Module):
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    @prepared
    def learn(self, x, y):
        F.cross_entropy(self.model(x), y).backward()
        self.optimizer.step()

    def fit(self, loader):
        for x, y in loader:
            self.learn(x, y)


def still_found(model: nn.Module, loader):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 10)
    for x, y in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        if not torch.isfinite(loss):
            break
        loss.backward()  # expect: gradients-not-zeroed
        optimizer.step()
        scheduler.step()


def scheduled_by_transformers(model: nn.Module, loader):
    optimizer = optim.AdamW(model.parameters())
    scheduler = get_linear_schedule_with_warmup(optimizer, 10, 100)
    for x, y in loader:
        F.cross_entropy(model(x), y).backward()  # expect: gradients-not-zeroed
        optimizer.step()
        scheduler.step()
