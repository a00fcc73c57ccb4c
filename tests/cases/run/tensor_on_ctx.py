"""An activation of one's own that keeps its output on ctx: every step leaves a circle behind."""

import torch
from torch import nn


class Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        out = torch.tanh(slope * x)
        ctx.out = out  # expect: tensor-on-ctx
        return out

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.slope * (1 - ctx.out**2), None


squash = Squash.apply


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 64), nn.Linear(64, 1)

    def forward(self, x):
        return self.last(squash(self.first(x), 0.5))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
for _ in range(30):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
