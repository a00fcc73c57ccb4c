"""A residual that a function of the script changes in place, for a forward that does not say so."""

import torch
from torch import nn


def mix(into, branch):
    flat = into.view(-1)
    flat.add_(branch.reshape(-1))
    return into


class FusedAdd(torch.autograd.Function):
    @staticmethod
    def forward(ctx, residual, branch):
        ctx.shape = branch.shape
        return mix(residual, branch) * 1.0  # expect: dirty-not-marked

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


torch.manual_seed(0)
first, branch, last = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*first.parameters(), *branch.parameters(), *last.parameters()], 1e-2)
x = torch.randn(64, 8)
for _ in range(30):
    mixed = FusedAdd.apply(first(x), branch(x))
    optimizer.zero_grad()
    nn.functional.mse_loss(last(mixed), x.sum(1, keepdim=True)).backward()
    optimizer.step()
