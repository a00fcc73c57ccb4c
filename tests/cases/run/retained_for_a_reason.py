"""Graphs that are retained and used again: two losses, each task's gradient, a penalty, a probe now and then."""

import torch
from torch import nn

torch.manual_seed(0)


def made():
    trunk = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
    return trunk, nn.Linear(16, 1), nn.Linear(16, 1)


def optimizer_of(*parts):
    return torch.optim.Adam([each for part in parts for each in part.parameters()], 1e-3)


# Two losses over one trunk
trunk, one, two = made()
optimizer = optimizer_of(trunk, one, two)
for _ in range(20):
    features = trunk(torch.randn(16, 8))
    optimizer.zero_grad()
    one(features).pow(2).mean().backward(retain_graph=True)
    (two(features) - 1).pow(2).mean().backward()
    optimizer.step()


# The gradient of each task by itself, the last one too
def of_each(losses, parts):
    for loss in losses:
        for part in parts:
            part.zero_grad()
        loss.backward(retain_graph=True)


for _ in range(20):
    features = trunk(torch.randn(16, 8))
    of_each([one(features).mean(), two(features).pow(2).mean()], [trunk, one, two])
    optimizer.step()

# A look at the input's gradient, once in fifty steps
for step in range(1, 70):
    x = torch.randn(16, 8, requires_grad=True)
    loss = one(trunk(x)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    if step % 66 == 0:
        print(torch.autograd.grad(loss, x)[0].norm().item())
    optimizer.step()

# A gradient penalty, and a graph that is made once and used in all steps
base = torch.randn(16, 8, requires_grad=True)
kept = base.sin()
for _ in range(20):
    optimizer.zero_grad()
    score = one(trunk(kept)).mean()
    (slope,) = torch.autograd.grad(score, base, create_graph=True)
    (score + slope.pow(2).sum()).backward(retain_graph=True)
    optimizer.step()
