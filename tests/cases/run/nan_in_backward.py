"""The norm of a row that is zero: its value is finite, its derivative is not."""

import torch
from torch import nn


class Length(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(4, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.scale(x)
        return y.pow(2).sum(-1).sqrt()  # expect: non-finite-origin step 8 module length


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.length = Length()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.length(x) * 2


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(14):
    x = torch.randn(16, 4)
    if step == 8:
        x[3] = 0
    optimizer.zero_grad()
    (model(x) - 1).pow(2).mean().backward()
    optimizer.step()
