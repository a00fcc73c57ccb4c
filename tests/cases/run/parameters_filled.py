"""Parameters made of empty memory that are filled: at once, by apply, through .data, by a loaded state, in forward."""

import torch
from torch import nn


class Filled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one = nn.Parameter(torch.empty(width, width))
        self.two = nn.Parameter(torch.Tensor(width, width))
        self.three = nn.Parameter(torch.empty(width, width))
        self.four = nn.Parameter(torch.zeros(width, width))
        self.five = nn.Parameter(torch.empty(width, width))
        self.six = nn.Parameter(torch.empty(width))
        nn.init.eye_(self.one)
        self.two.data.zero_()

    def forward(self, x):
        if self.five.abs().max() != 1:
            with torch.no_grad():
                self.five.fill_(1)
        return x @ self.one + x @ self.two + x @ (self.three + self.four + 0.01 * self.five) + self.six


def fill(module):
    if isinstance(module, Filled):
        nn.init.normal_(module.three, 0.0, 0.1)
        module.six.data = torch.ones(8)


torch.manual_seed(0)
model = Filled(8).apply(fill)
state = {name: torch.ones_like(value) for name, value in model.state_dict().items() if name == "six"}
model.load_state_dict(state, strict=False)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
x = torch.randn(32, 8)
for _ in range(12):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
