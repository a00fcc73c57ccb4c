"""Parameters that are computed with before they are assigned, and parameters that stay what they are."""

import math

import torch
import torch.nn as nn
from torch.nn import Parameter


def learnable(width, device):
    return nn.Parameter(torch.randn(width)).to(device)


def learnable_there(width, device):
    return nn.Parameter(torch.randn(width, device=device))


class Gate(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width)).to(device)  # expect: parameter-then-moved
        self.bias = nn.Parameter(torch.zeros(width)).cuda()  # expect: parameter-then-moved
        self.scale = Parameter(torch.ones(1)) * 0.1  # expect: parameter-then-moved
        self.query = nn.Parameter(torch.randn(width) / math.sqrt(width), requires_grad=True).unsqueeze(0)  # expect: parameter-then-moved
        self.half = Parameter(torch.ones(width), requires_grad=True).half().to(device)  # expect: parameter-then-moved

        self.left, self.right = nn.Parameter(torch.ones(width)).to(device), nn.Parameter(torch.ones(width))  # expect: parameter-then-moved
        token = nn.Parameter(torch.zeros(1, width))
        self.token = token.to(device)  # expect: parameter-then-moved
        self.prompt = learnable(width, device)  # expect: parameter-then-moved

    def forward(self, x):
        return (x @ self.weight + self.bias) * self.scale * self.query


class Sound(nn.Module):
    def __init__(self, width, device, init):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width).to(device))
        self.bias = nn.Parameter(torch.zeros(width, device=device)).requires_grad_(False)
        self.both = nn.Parameter(nn.Parameter(torch.zeros(width)).to(device))
        self.start = nn.Parameter(torch.zeros(width)).detach()
        self.count = nn.Parameter(torch.zeros(width)).numel()
        self.list = nn.ParameterList([nn.Parameter(torch.zeros(width)).to(device)])
        self.conv = nn.Linear(width, width).to(device)
        raw = nn.Parameter(torch.randn(width))
        self.unit = raw / raw.norm()  # expect: parameter-then-moved
        self.kept = nn.Parameter(torch.zeros(width)).float()
        self.kept = nn.Parameter(self.kept.data)
        self.shape = nn.Parameter(torch.zeros(width)).shape
        self.first = nn.Parameter(torch.zeros(width))
        self.prompt = learnable_there(width, device)
        query = nn.Parameter(torch.zeros(width))
        self.register_parameter("query", query)
        self.wide = query.to(torch.float64)

    def forward(self, x):
        product = nn.Parameter(torch.ones(1)).to(x.device) * x
        return self.conv(product)


def detached(width, device):
    prompt = nn.Parameter(torch.zeros(width))
    return prompt.to(device)
