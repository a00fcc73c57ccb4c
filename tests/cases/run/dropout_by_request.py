"""Dropouts in evaluation mode that somebody asks for: by a keyword, by a flag of the module; and one that is told."""

import torch
import torch.nn.functional as F
from torch import nn


def regularise(x, rate=0.1, training=True):
    return F.dropout(x, rate, training)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.out = nn.Linear(8, 8), nn.Linear(8, 2)
        self.always = True

    def forward(self, x, training=False):
        x = regularise(torch.relu(self.body(x)), 0.3, self.training)
        x = regularise(x, training=True)
        x = F.dropout(x, 0.1, training or self.training)
        x = F.dropout(x, 0.1, training=self.always)
        return self.out(F.dropout(x, 0.1, training))


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
for epoch in range(30):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x, training=True), y).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print((model(x).argmax(1) == y).float().mean().item())
    print((model(x, True).argmax(1) == y).float().mean().item())
