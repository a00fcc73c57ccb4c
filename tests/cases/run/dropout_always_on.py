"""A functional dropout that is never told the mode, in a helper that is imported by name."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout


def regularised(x, rate):
    return dropout(  # expect: dropout-always-on
        x,
        p=rate,
    )


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(8, 32), nn.Linear(32, 2)

    def forward(self, x):
        return self.out(regularised(torch.relu(self.body(x)), 0.3))


torch.manual_seed(0)
model = Head()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
for epoch in range(30):
    model.train()
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print((model(x).argmax(1) == y).float().mean().item())
