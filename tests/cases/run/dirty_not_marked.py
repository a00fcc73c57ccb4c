"""A scaling in place, through a view, that autograd is not told of; the input is used once more."""

import torch
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, factor):
        flat = x.view(-1)
        x.view(-1).mul_(factor)  # expect: dirty-not-marked
        return flat.view_as(x).clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.factor = inputs

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None


torch.manual_seed(0)
first, last = nn.Linear(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], 1e-2)
x = torch.randn(64, 8)
for _ in range(30):
    hidden = first(x)
    mixed = Scale.apply(hidden, 0.5) + hidden
    optimizer.zero_grad()
    nn.functional.mse_loss(last(mixed), x.sum(1, keepdim=True)).backward()
    optimizer.step()
