"""A decorator that takes the time."""

import functools
import time

import torch


def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        begin = time.perf_counter()
        result = fn(*args, **kwargs)
        print(f"{fn.__name__}: {time.perf_counter() - begin:.4f} s")  # expect: timing-without-sync
        return result

    return wrapper


class Bench:
    def __init__(self, net):
        self.net = net.to("cuda")
        self.x = torch.randn(8, 3, 64, 64, device="cuda")

    @timed
    def forward(self):
        return self.net(self.x)

    @timed
    def backward(self):
        self.net(self.x).sum().backward()
