"""A function of the user's own gives back its gradient with the wrong sign: the loss climbs, though the rate is small."""

import torch
from torch import nn


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 1.0 * x

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh()), nn.Linear(32, 4)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], 1e-2)
for _ in range(200):
    x = torch.randn(32, 8)
    logits = Scaled.apply(head(body(x)))
    loss = nn.functional.cross_entropy(logits, x[:, :4].argmax(1))  # expect: loss-diverged
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
