"""Autocast with a frozen backbone and a head in float32, and a generator in float32 beside a critic that is not."""

import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU()).requires_grad_(False)


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = backbone, nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        features = self.backbone(x)
        with torch.autocast("cpu", enabled=False):
            return self.head(features.float())


class Exact(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, noise):
        with torch.autocast("cpu", enabled=False):
            return self.layers(noise)


tuned, maker, critic = Tuned(), Exact(), nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizers = [torch.optim.Adam((p for p in net.parameters() if p.requires_grad), 1e-3) for net in (tuned, maker, critic)]
for step in range(40):
    x = torch.randn(32, 8)
    for optimizer in optimizers:
        optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(tuned(x), (x.sum(1) > 0).long())
        judged = critic(maker(torch.randn(32, 4))).mean() - critic(x).mean()
    loss.backward()
    judged.backward()
    for optimizer in optimizers:
        optimizer.step()
