"""Layers in plain containers, and containers that only look like it."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc(self.norm(x))


class InList(nn.Module):
    def __init__(self, width, depth):
        super(InList, self).__init__()
        self.blocks = []  # expect: unregistered-modules
        for _ in range(depth):
            self.blocks.append(Block(width))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class InDict(nn.Module):
    def __init__(self, width, tasks):
        super().__init__()
        self.heads = {task: nn.Linear(width, 1) for task in tasks}  # expect: unregistered-modules
        self.scales = {"a": nn.Parameter(torch.ones(1)), "b": nn.Parameter(torch.ones(1))}  # expect: unregistered-modules

    def forward(self, x, task):
        return self.heads[task](x) * self.scales["a"]


class ThroughLocal(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        layers = []
        for before, after in zip(sizes, sizes[1:]):
            layers += [nn.Linear(before, after)]
        self.layers = layers  # expect: unregistered-modules

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


class ByHelper(nn.Module):
    """The helper makes the layers."""

    def __init__(self, width):
        super().__init__()
        self.towers = (self._tower(width), self._tower(width))  # expect: unregistered-modules

    def _tower(self, width):
        return nn.Sequential(nn.Linear(width, width), nn.ReLU())

    def forward(self, x):
        return self.towers[0](x) + self.towers[1](x)


class ByIndex(Block):
    """A grandchild of nn.Module."""

    def __init__(self, width):
        super().__init__(width)
        self.experts = {}  # expect: unregistered-modules
        for k in range(4):
            self.experts[k] = nn.Linear(width, width)


class AlsoAttributes(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Linear(width, width)
        self.body = nn.Linear(width, width)
        self.stages = [self.stem, self.body]
        head = nn.Linear(width, 1)
        self.head = head
        self.ends = (head,)


class GoesOn(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.plain = [Block(width) for _ in range(depth)]
        self.net = nn.Sequential(*self.plain)
        layers = [nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, width, 3)]
        self.features = nn.Sequential(*layers)
        self.layers = layers
        self.rebound = [nn.Linear(1, 1)]
        self.rebound = nn.ModuleList(self.rebound)


class ByName(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.blocks = []
        for k in range(depth):
            block = Block(width)
            self.add_module(f"block{k}", block)
            self.blocks.append(block)


class Stateless(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.activations = [nn.ReLU(), nn.Tanh(), nn.GELU()]
        self.pools = {"max": nn.MaxPool2d(2), "mean": nn.AvgPool2d(2)}
        self.channels = [channels, channels * 2]
        self.criteria = [nn.MSELoss(), nn.L1Loss()]


class Distilled(nn.Module):
    def __init__(self, student: nn.Module, teacher: nn.Module):
        super().__init__()
        self.student = student
        self.hidden = [teacher]  # deliberately outside of parameters()

    def forward(self, x):
        with torch.no_grad():
            goal = self.hidden[0](x)
        return F.mse_loss(self.student(x), goal)


class NotAModule:
    def __init__(self):
        self.models = [nn.Linear(2, 2) for _ in range(5)]
