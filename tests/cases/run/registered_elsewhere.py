"""Lists of layers and plain tensors with gradients that somebody does look after, or that are inputs."""

import torch
from torch import nn


class Stages(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.body = nn.Linear(8, 8), nn.Linear(8, 8)
        self.stages = [self.stem, self.body]
        self.frozen = [nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 8).requires_grad_(False)]
        self.teacher = [nn.Linear(8, 8)]
        self.outside = [nn.Linear(8, 8), nn.Linear(8, 8)]
        self.by_hand = torch.ones(8, requires_grad=True)
        self.mask = torch.ones(8)

    def forward(self, x):
        for stage in [*self.stages, *self.frozen, *self.outside]:
            x = torch.tanh(stage(x))
        return self.teacher[0](x) * self.by_hand * self.mask


class Physics(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
        self.points = torch.linspace(0, 1, 32)[:, None].requires_grad_()

    def forward(self, x=None):
        return self.net(self.points if x is None else x)


torch.manual_seed(0)
model = Stages()
outside = [parameter for layer in model.outside for parameter in layer.parameters()]
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
beside = torch.optim.SGD(outside, 1e-3)
x = torch.randn(64, 8)
for turn in range(40):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
    if turn % 4 == 3:
        beside.step()
        beside.zero_grad()
    with torch.no_grad():
        model.by_hand -= 0.01 * model.by_hand.grad
    model.by_hand.grad = None

physics = Physics()
optimizer = torch.optim.Adam(physics.parameters(), 1e-2)
for _ in range(30):
    optimizer.zero_grad()
    u = physics()
    (slope,) = torch.autograd.grad(u.sum(), physics.points, create_graph=True)
    ((slope + u) ** 2).mean().backward()
    optimizer.step()
