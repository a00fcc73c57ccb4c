"""Decay rates that are equal, or close, or none, and Lion's, which are both of one mean."""

import torch
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-4, betas=(0.9, 0.99)):
        super().__init__(params, {"lr": lr, "betas": betas})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for each in group["params"]:
                mean = self.state[each].setdefault("mean", torch.zeros_like(each))
                each.add_((mean * first + each.grad * (1 - first)).sign(), alpha=-group["lr"])
                mean.lerp_(each.grad, 1 - second)


torch.manual_seed(0)
for kind, betas in (
    (torch.optim.Adam, (0.9, 0.9)),
    (torch.optim.AdamW, (0.95, 0.9)),
    (torch.optim.NAdam, (0.9, 0.999)),
    (torch.optim.Adam, (0.0, 0.9)),
    (torch.optim.Adam, (0.9, 0.0)),
    (Lion, (0.99, 0.9)),
):
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
    optimizer = kind(model.parameters(), lr=0.001, betas=betas)
    for _ in range(12):
        x = torch.randn(64, 8)
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
