"""An optimizer that applies every eighth step, one whose rate is at zero for a while, and one that writes to the data."""

import torch
from torch import nn


class Gathering(torch.optim.SGD):
    """Adds up what eight steps would do, and then does it."""

    calls = 0

    def step(self, closure=None):
        self.calls += 1
        if self.calls % 8 == 0:
            super().step(closure)


class ByData(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.01})

    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data -= group["lr"] * parameter.grad.data


torch.manual_seed(0)
nets = [nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2)) for _ in range(3)]
waiting = torch.optim.Adam(nets[2].parameters(), 1e-2)
optimizers = [Gathering(nets[0].parameters(), 0.1), ByData(nets[1].parameters()), waiting]
for step in range(120):
    waiting.param_groups[0]["lr"] = 0.0 if step < 60 else 1e-2
    x = torch.randn(32, 8)
    for net, optimizer in zip(nets, optimizers, strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long()).backward()
        optimizer.step()
