"""Experts that are never chosen, a backbone under no_grad, a head that is trained at the end, a feature cut off."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        self.side = nn.Linear(8, 16)
        self.experts = nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])
        self.heads = nn.ModuleDict({"first": nn.Linear(16, 1), "second": nn.Linear(16, 1)})
        self.late = nn.Linear(16, 1)
        self.frozen = nn.Linear(16, 16).requires_grad_(False)

    def forward(self, x, expert, late):
        with torch.no_grad():
            features = self.backbone(x)
        features = features + self.side(x).detach()
        features = self.frozen(self.experts[expert](features))
        return self.late(features) if late else self.heads["first"](features)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
for step in range(60):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x, step % 2, step > 55), x.sum(1, keepdim=True)).backward()
    optimizer.step()
