"""A layer that no forward pass comes to, in a program that trains the rest."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Gated(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.value = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)  # expect: parameter-never-used
        self.out = nn.Linear(width, 4)

    def forward(self, x):
        return self.out(self.value(x) * torch.sigmoid(self.value(x)))


class Chosen(nn.Module):
    """Of several heads the task's is taken."""

    def __init__(self, tasks=3):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.heads = nn.ModuleList([nn.Linear(8, 4) for _ in range(tasks)])

    def forward(self, x, task=0):
        return self.heads[task](torch.relu(self.body(x)))


class Auxiliary(nn.Module):
    """A second head, for those who ask for it."""

    def __init__(self, has_second):
        super().__init__()
        self.body, self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4), nn.Linear(8, 4)
        self.has_second = has_second

    def forward(self, x):
        h = torch.relu(self.body(x))
        return self.first(h) + self.second(h) if self.has_second else self.first(h)


class ByPrefix(nn.Module):
    """Layers under names that are put together, and found again by how they begin."""

    def __init__(self, names):
        super().__init__()
        for name in names:
            setattr(self, "layer_" + name, nn.Linear(8, 8))
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        for name, layer in self.named_children():
            if name.startswith("layer_"):
                x = layer(x)
        return self.out(x)


class Part(nn.Module):
    def __init__(self, whole):
        super().__init__()
        self.whole, self.mix = whole, nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.mix(x))


class Linked(nn.Module):
    """A part that knows the whole: the modules make a circle."""

    def __init__(self):
        super().__init__()
        self.body, self.out = Part(self), nn.Linear(8, 4)
        self.spare = nn.Linear(8, 4)  # expect: parameter-never-used

    def forward(self, x):
        return self.out(self.body(x))


def fit(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()


if __name__ == "__main__":
    import sys

    loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.zeros(64).long()), 16, shuffle=True)
    fit(Gated(), loader)
    fit(Linked(), loader)
    fit(ByPrefix(sys.argv[1:]), loader)
    fit(Chosen(), loader)
    fit(Auxiliary(len(sys.argv) > 1), loader)
