"""Four scales by name of which a forward pass takes three, always the same ones."""

import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lift = nn.Linear(8, width)
        self.scales = nn.ParameterDict(  # expect: parameter-never-used module scales.skip
            {name: nn.Parameter(torch.ones(width)) for name in ("gate", "value", "skip", "out")}
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.lift(x)
        x = x + self.scales["gate"] * torch.tanh(self.scales["value"] * x)
        return self.head(self.scales["out"] * x)


torch.manual_seed(0)
model = Mixer(16)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
for _ in range(60):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
