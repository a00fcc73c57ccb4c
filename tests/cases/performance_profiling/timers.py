"""Timers that are context managers: with and without a wait for the device."""

import time
from contextlib import contextmanager

import torch
from torch import nn


class Trainer:
    def __init__(self, model, loss):
        self.model = model.to("cuda")
        self.loss = loss
        self.spent = {}

    @contextmanager
    def section(self, name):
        start = time.perf_counter()
        yield
        self.spent[name] = time.perf_counter() - start  # expect: timing-without-sync

    @contextmanager
    def waited(self, name):
        torch.cuda.synchronize()
        start = time.perf_counter()
        yield
        torch.cuda.synchronize()
        self.spent[name] = time.perf_counter() - start

    def forward(self, x):
        with self.section("forward"):
            y = self.model(x)
        with self.waited("forward again"):
            y = self.model(x) + y
        return y


@contextmanager
def stopwatch(what):
    begin = time.time()
    yield
    print(what, time.time() - begin)


def evaluate(net: nn.Module, loader):
    net = net.cuda()
    with stopwatch("whole evaluation"):
        return sum(net(x.cuda()).sum().item() for x in loader)
