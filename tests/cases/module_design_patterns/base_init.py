"""Constructors with and without the base class's own."""

import abc

import torch
import torch.nn as nn
import torchvision
from timm.layers import DropPath

from somewhere import BaseModel


class Late(nn.Module):
    def __init__(self, in_dim, hidden, classes):
        self.fc1 = nn.Linear(in_dim, hidden)  # expect: super-init-missing
        self.fc2 = nn.Linear(hidden, classes)
        super(Late, self).__init__()

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class Forgotten(nn.Module):
    """A gate that learns its temperature."""

    def __init__(self, width, heads=4):
        """Documented."""
        self.heads = heads
        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))  # expect: super-init-missing
        self.project = nn.Linear(width, width * heads)

    def forward(self, x):
        return self.project(x) * self.temperature


class OnlyNumbers(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):  # expect: super-init-missing
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, logits, targets):
        loss = nn.functional.cross_entropy(logits, targets, reduction="none")
        return (self.alpha * (1 - torch.exp(-loss)) ** self.gamma * loss).mean()


class Positions(nn.Module):
    def __init__(self, width, length=512):
        table = torch.zeros(length, width)
        self.register_buffer("table", table)  # expect: super-init-missing
        super().__init__()

    def forward(self, x):
        return x + self.table[: x.size(1)]


class ThroughHelper(nn.Module):
    def __init__(self, width):
        self.width = width
        self._build()
        super().__init__()

    def _build(self):
        self.body = nn.Sequential(nn.Linear(self.width, self.width), nn.ReLU())  # expect: super-init-missing


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)


class Child(Encoder):
    def __init__(self, width):
        self.extra = Encoder(width)  # expect: super-init-missing
        super().__init__(width)


class Usual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)


class OldStyle(nn.Module):
    def __init__(self, width):
        nn.Module.__init__(self)
        self.fc = nn.Linear(width, width)


class OldSuper(nn.Module):
    def __init__(self, width):
        self.width, self.names = width, ["a", "b"]
        self.scratch = torch.zeros(width)
        super(OldSuper, self).__init__()
        self.fc = nn.Linear(width, width)


class Inherits(Usual):
    def forward(self, x):
        return self.fc(x)


class FromElsewhere(BaseModel, nn.Module):
    def __init__(self, width):
        self.fc = nn.Linear(width, width)


class BuiltByHelper(nn.Module):
    def __init__(self, width):
        self._begin()
        self.fc = nn.Linear(width, width)

    def _begin(self):
        super().__init__()


class Prepared(nn.Module):
    def __new__(cls, *args):
        made = super().__new__(cls)
        nn.Module.__init__(made)
        return made

    def __init__(self, width):
        self.fc = nn.Linear(width, width)


class Branching(nn.Module):
    def __init__(self, width, deep):
        if deep:
            super().__init__()
            self.fc = nn.Linear(width, width)
        else:
            super().__init__()
            self.fc = nn.Linear(width, 1)


class Mixed(nn.Module):
    """Another class runs this constructor after that of nn.Module."""

    def __init__(self, width):
        self.gate = nn.Linear(width, 1)


class Mixing(OldStyle, Mixed):
    def __init__(self, width):
        OldStyle.__init__(self, width)
        Mixed.__init__(self, width)


class Abstract(nn.Module, abc.ABC):
    def __init__(self):
        super().__init__()
        self.drop = DropPath(0.1)

    @abc.abstractmethod
    def forward(self, x): ...


class Plain:
    def __init__(self, width):
        self.model = nn.Linear(width, width)
        self.backbone = torchvision.models.resnet18()


class Weights(nn.Parameter):
    def __init__(self, data):
        self.note = nn.Identity()
