"""A helper that drops by default, which the module calls without its mode."""

import torch
import torch.nn.functional as F
from torch import nn


def regularise(x, rate=0.1, training=True):
    return F.dropout(x, rate, training)  # expect: dropout-always-on module cells.0


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return regularise(torch.relu(self.body(x)), rate=0.3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = nn.ModuleList([Cell(), Cell()]), nn.Linear(8, 2)

    def forward(self, x):
        for cell in self.cells:
            x = cell(x)
        return self.out(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
for epoch in range(30):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print((model(x).argmax(1) == y).float().mean().item())
