"""Layers that are made once for everybody, and parameters that nobody fills."""

import copy
import math

import torch
import torch.nn as nn


class ConvBlock(nn.Module):
    def __init__(self, channels, act=nn.PReLU(), norm=nn.BatchNorm2d(64)):  # expect: module-as-default-argument
        super().__init__()
        self.conv = nn.Conv2d(channels, 64, 3)
        self.norm, self.act = norm, act

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class Shared(nn.Module):
    head = nn.Linear(8, 2)  # expect: module-as-default-argument
    scale = nn.Parameter(torch.ones(1))  # expect: module-as-default-argument

    def forward(self, x):
        return self.head(x) * self.scale


def make_mlp(width, *, last=nn.Linear(16, 1)):  # expect: module-as-default-argument
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), last)


class Sound(nn.Module):
    kind = nn.LayerNorm
    activation = nn.ReLU()
    width: int = 8
    template = nn.Linear(8, 8)

    def __init__(self, act=nn.ReLU(), norm_layer=nn.BatchNorm2d, head=None, drop=nn.Dropout(0.1)):
        super().__init__()
        self.act = act
        self.norm = norm_layer(8)
        self.head = head if head is not None else nn.Linear(8, 8)
        self.body = copy.deepcopy(Sound.template)


def score(x, model=Sound(), criterion=nn.CrossEntropyLoss()):
    return criterion(model(x), x)


class Raw(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))  # expect: uninitialised-parameter
        self.bias = nn.Parameter(torch.Tensor(outputs, 1))  # expect: uninitialised-parameter
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return (x @ self.weight.t() + self.bias.t()) * self.scale


class Filled(nn.Module):
    def __init__(self, inputs, outputs, given):
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(outputs, inputs))
        self.shift = nn.Parameter(torch.empty(outputs))
        self.gain = nn.Parameter(torch.empty(outputs))
        self.copied = nn.Parameter(torch.Tensor(given))
        self.frozen = nn.Parameter(torch.empty(outputs), requires_grad=False)
        nn.init.kaiming_uniform_(self.kernel, a=math.sqrt(5))
        self.gain.data.fill_(1.0)
        with torch.no_grad():
            self.shift.zero_()

    def forward(self, x):
        return (x @ self.kernel.t() + self.shift) * self.gain * self.copied * self.frozen


def freeze(model):
    for name, value in model.named_parameters():
        value.requires_grad = "scale" in name
    return sum(value.numel() for value in model.parameters())
