"""Closures that clear gradients first, an optimizer that clears them after use, and a step at rate zero."""

import torch
from torch import nn


class Greedy(torch.optim.Optimizer):
    """Steps along the sign, and clears behind itself, past the versions of its parameters."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self, closure):
        loss = closure()
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data.sub_(group["lr"] * parameter.grad.sign())
                parameter.grad = None
        return loss


torch.manual_seed(0)
x = torch.randn(64, 8)
for kind, rate in ((torch.optim.LBFGS, 0.5), (torch.optim.SGD, 0.1), (torch.optim.SGD, 0.0), (Greedy, 1e-2)):
    model = nn.Linear(8, 1)
    optimizer = kind(model.parameters(), lr=rate)

    def closure(model=model, optimizer=optimizer):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        return loss

    for _ in range(12):
        optimizer.step(closure)
