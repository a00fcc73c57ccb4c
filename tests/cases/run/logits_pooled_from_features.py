"""A ReLU near the loss, and no logit is cut off: a pooling, a scale, a bias or a layer comes after it."""

import torch
from torch import nn

torch.manual_seed(0)


class Squeezed(nn.Module):
    """As SqueezeNet ends."""

    def __init__(self):
        super().__init__()
        self.classify = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten())

    def forward(self, x):
        return self.classify(x.view(-1, 1, 8, 8))


class Gated(nn.Module):
    """The logits are a sum, one part of which is never below 0."""

    def __init__(self):
        super().__init__()
        self.plain, self.gate = nn.Linear(64, 4), nn.Linear(64, 4)

    def forward(self, x):
        return self.plain(x) + torch.relu(self.gate(x))


class Scaled(nn.Module):
    """A similarity that is never below 0, by a learned temperature, as of prototypes."""

    def __init__(self):
        super().__init__()
        self.prototypes = nn.Parameter(torch.randn(4, 64))
        self.scale = nn.Parameter(torch.tensor(10.0))

    def forward(self, x):
        return self.scale * torch.relu(nn.functional.normalize(x) @ nn.functional.normalize(self.prototypes).T)


class Plain(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))


for kind in (Squeezed, Gated, Scaled, Plain):
    model = kind()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        x = torch.randn(64, 64)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), x.view(-1, 4, 16).mean(2).argmax(1)).backward()
        optimizer.step()
