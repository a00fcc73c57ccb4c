"""Modules in plain containers that are registered somewhere else, or have nothing to register."""

import torch
import torch.nn as nn


class AddedOneByOne(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.stages = [nn.Linear(4, 4) for _ in range(depth)]
        self.known = nn.ModuleList()
        for stage in self.stages:
            self.known.append(stage)


class AddedTogether(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.stages = [nn.Linear(4, 4) for _ in range(depth)]
        self.known = nn.ModuleList()
        self.known.extend(self.stages)


class AddedAsDict(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.heads = {name: nn.Linear(4, 4) for name in names}
        self.known = nn.ModuleDict()
        self.known.update(self.heads)


class JoinedByAMethod(nn.Module):
    def __init__(self, depth):
        super().__init__()
        stages = [nn.Linear(4, 4) for _ in range(depth)]
        self.stages = stages
        self.body = self.join(stages)

    def join(self, parts):
        return nn.Sequential(*parts)


class AddedThroughSuper(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.stages = [nn.Linear(4, 4) for _ in range(depth)]
        for number, stage in enumerate(self.stages):
            super().add_module(f"stage{number}", stage)


class SetThroughTheClass(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.stages = [nn.Linear(4, 4) for _ in range(depth)]
        for number, stage in enumerate(self.stages):
            nn.Module.__setattr__(self, f"stage{number}", stage)


class PutIntoTheRegistry(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.stages = [nn.Linear(4, 4) for _ in range(depth)]
        self.__dict__["_modules"].update({str(number): stage for number, stage in enumerate(self.stages)})


class MoreWithoutState(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.pads = [nn.ReplicationPad1d(size) for size in sizes]
        self.pools = [nn.LPPool1d(2, size) for size in sizes]
        self.gates = {"glu": nn.GLU(), "soft": nn.Softshrink(), "hard": nn.Threshold(0.1, 0.0)}
        self.measures = (nn.CosineSimilarity(), nn.PairwiseDistance())


class Gate(nn.Module):
    def forward(self, x):
        return x * torch.tanh(x)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(1))


class OwnWithoutState(nn.Module):
    def __init__(self):
        super().__init__()
        self.gates = [Gate(), Gate()]
        self.scales = [Scale(), Scale()]  # expect: unregistered-modules


class OnlyCounted(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.sizes = []
        self.stages = [nn.Linear(4, 4) for _ in range(depth)]  # expect: unregistered-modules
        for stage in self.stages:
            self.sizes.append(stage.in_features)


class AddedInPlace(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.stages = [nn.Linear(4, 4) for _ in range(depth)]
        self.known = nn.ModuleList()
        self.known += self.stages


class FilledIn(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.sizes = [0] * depth
        self.stages = [None] * depth  # expect: unregistered-modules
        for number in range(depth):
            self.sizes[number] = number + 1
            self.stages[number] = nn.GRU(4, 4)


class UnpackedLayers(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.third, self.fourth = (nn.Linear(width, width) for _ in range(2))
        [self.fifth, self.sixth] = [nn.LayerNorm(width), nn.LayerNorm(width)]

    def forward(self, x):
        return self.sixth(self.fifth(self.fourth(self.third(self.second(self.first(x))))))


class Smooth(nn.Module):
    """Numbers, and a pooling that has none of its own."""

    def __init__(self, size):
        super().__init__()
        self.size = size
        self.pool = nn.AvgPool1d(size, stride=1)


class Decompose(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.smooth = Smooth(sizes[0])


class Unpacked(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.parts = [Decompose(sizes), Smooth(3)]
        self.first, self.rest = nn.Linear(4, 4), [nn.Linear(4, 4), nn.ReLU()]  # expect: unregistered-modules
        self.gains, self.shifts = nn.ParameterList(), nn.ParameterList()
        for _ in sizes:
            self.gains.append(nn.Parameter(torch.ones(1)))
