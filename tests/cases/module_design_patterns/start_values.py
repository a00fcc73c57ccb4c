"""What is computed of a parameter, and only where others begin; a parameter that is filled where it was moved to."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Rotate(nn.Module):
    def __init__(self, kinds, wide):
        super().__init__()
        seed = nn.Parameter(torch.empty(len(kinds), wide, 2))
        nn.init.xavier_normal_(seed.data)
        self.start = F.normalize(seed, p=2, dim=2)
        self.start = torch.stack([self.start, self.start], dim=1)
        self.start = self.start.reshape(seed.shape[0] * 2, seed.shape[1], 2)
        self.turn = nn.ParameterDict()
        for i, kind in enumerate(kinds):
            self.turn[kind] = nn.Parameter(self.start[i])

    def forward(self, x, kind):
        return x * self.turn[kind]


net = Rotate(["ab", "ba"], 4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(4, 2), "ab").sum().backward()
optimizer.step()


class Product(nn.Module):
    def __init__(self, wide, device):
        super().__init__()
        self.weight = nn.Parameter(torch.FloatTensor(wide, wide)).to(device)  # expect: parameter-then-moved
        bound = 1.0 / math.sqrt(wide)
        self.weight.data.uniform_(-bound, bound)

    def forward(self, x):
        return torch.mm(x, self.weight)
