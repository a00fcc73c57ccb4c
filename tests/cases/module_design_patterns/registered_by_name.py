"""Layers that are put into a list and are attributes as well, under names that are put together."""

from torch import nn

GATES = {"relu": nn.ReLU, "none": nn.Identity}


class Stack(nn.Module):
    def __init__(self, widths, gate="relu"):
        super().__init__()
        self.widths = widths
        self.first = nn.Linear(widths[0], widths[1])
        self.order = [self.first]
        for k in range(1, len(widths) - 1):
            part = nn.Linear(widths[k], widths[k + 1])
            setattr(self, "linear%d" % k, part)
            self.order.append(part)
            part = GATES[gate]()
            setattr(self, "gate%d" % k, part)
            self.order.append(part)

    def forward(self, x):
        for k in range(len(self.order)):
            x = self.order[k](x)
        return x


class Pyramid(nn.Module):
    def __init__(self, resolution):
        super().__init__()
        self.sizes = [2**i for i in range(2, resolution + 1)]
        self.stages = []
        for size in self.sizes:
            stage = nn.Conv2d(3, 3, 3, padding=1)
            setattr(self, f"stage{size}", stage)
            self.stages.append(stage)

    def forward(self, x):
        for size in self.sizes:
            x = getattr(self, f"stage{size}")(x)
        return x


class Lost(nn.Module):
    def __init__(self, resolution):
        super().__init__()
        self.sizes = [2**i for i in range(2, resolution + 1)]
        self.stages = []  # expect: unregistered-modules
        for _ in self.sizes:
            self.stages.append(nn.Conv2d(3, 3, 3, padding=1))

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return x
