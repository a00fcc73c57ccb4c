"""A layer takes the logarithm of a value that turns negative after some steps."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.log(self.level)  # expect: non-finite-origin step 5 module 2


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), Gate(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.0)
for step in range(12):
    if step == 5:
        with torch.no_grad():
            model[2].level.fill_(-0.1)
    optimizer.zero_grad()
    model(torch.randn(16, 8)).pow(2).mean().backward()
    optimizer.step()
