"""Parameters of empty memory that are filled by an assignment to their data; one that nothing fills."""

import torch
from torch import nn


def fill(weights, scale):
    for weight in weights:
        weight.data = torch.randn(weight.shape).mul(scale).type_as(weight.data)


class Pair(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.real = nn.Parameter(torch.empty(width, width))
        self.imaginary = nn.Parameter(torch.empty(width, width))
        self.shift = nn.Parameter(torch.empty(width))  # expect: uninitialised-parameter
        fill([self.real, self.imaginary], 0.02)

    def forward(self, x):
        return x @ self.real - x @ self.imaginary + self.shift


net = Pair(8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(100):
    optimizer.zero_grad()
    net(torch.randn(4, 8)).pow(2).mean().backward()
    optimizer.step()
