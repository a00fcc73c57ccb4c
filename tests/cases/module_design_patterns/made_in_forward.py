"""Layers that are made while the module runs."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc(x)


class Pooled(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)
        self.classes = classes

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = nn.BatchNorm2d(x.size(1)).to(x.device)(x)  # expect: layer-built-in-forward
        x = x.flatten(1)
        head = nn.Linear(x.size(1), self.classes).to(x.device)  # expect: layer-built-in-forward
        return head(x)


class ThroughHelper(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.first = nn.Linear(width, width)

    def forward(self, x):
        x = self.first(x)
        return self.project(x)

    def project(self, x):
        mlp = nn.Sequential(  # expect: layer-built-in-forward
            nn.Linear(self.width, self.width),
            nn.ReLU(),
        )
        x = Residual(self.width)(x)  # expect: layer-built-in-forward
        return mlp(x)


class Stateless(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        x = nn.ReLU()(self.fc(x))
        x = nn.Softmax(dim=-1)(x)
        norm = nn.LayerNorm(x.shape[1:], elementwise_affine=False)
        pool = nn.AdaptiveAvgPool1d(1)
        x = nn.InstanceNorm1d(3)(x)
        return pool(norm(x)) + nn.MSELoss()(x, x)


class Lazy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.head = None

    def forward(self, x):
        if self.head is None:
            self.head = nn.Linear(x.size(-1), self.width)
            self.head.to(x.device)
        if not hasattr(self, "norm"):
            norm = nn.LayerNorm(self.width)
            self.norm = norm
        return self.norm(self.head(x))


class Given(nn.Module):
    """Layers whose weights come from elsewhere."""

    def forward(self, x, kernel, state):
        conv = nn.Conv2d(1, 1, 3, bias=False)
        conv.weight.data = kernel
        x = conv(x)
        fc = nn.Linear(4, 4)
        fc.load_state_dict(state)
        other = nn.Linear(4, 4)
        nn.init.eye_(other.weight)
        return other(fc(x))


class Copies(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x):
        cell = copy.deepcopy(self.cell)
        layers = [nn.Linear(4, 4)]
        self.kept = layers[0]
        return cell(x), self.make()(x), self.cached()(x)  # expect: layer-built-in-forward

    def make(self):
        return nn.Linear(4, 4)

    def cached(self):
        if not hasattr(self, "layer"):
            self.layer = nn.Linear(4, 4)
        return self.layer


def head(x, classes):
    fc = nn.Linear(x.size(-1), classes)  # expect: layer-built-in-forward
    return fc(x)


class Deep(nn.Module):
    def __init__(self, depth, classes):
        super().__init__()
        self.depth, self.classes = depth, classes

    def forward(self, x):
        layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(self.depth)])  # expect: layer-built-in-forward
        for layer in layers:
            x = torch.relu(layer(x))
        for act in nn.ModuleList([nn.ReLU(), nn.Tanh()]):
            x = act(x)
        return head(x, self.classes)


class Built(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.sizes = self.infer(width)

    def infer(self, width):
        probe = nn.Conv2d(3, width, 3)
        return probe(torch.zeros(1, 3, 8, 8)).shape

    def forward(self, x):
        return x


def loss(x):
    return nn.Linear(4, 1)(x).mean()


class RandomConv(nn.Module):
    """Another random filter for every batch: an augmentation."""

    def forward(self, x):
        return nn.Conv2d(3, 3, 3, padding=1)(x)
