"""Twenty quiet epochs; then a first validation, after which nothing is as it was."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, dropout
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(dropout(self.body(x), 0.3))  # expect: dropout-always-on


@torch.no_grad()
def accuracy(model, loader):
    model.eval()  # expect: mode-left-in-eval step 320
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


torch.manual_seed(0)
points = torch.randn(384, 8)
names = (points.sum(1) > 0).long()
learn = DataLoader(TensorDataset(points[:256], names[:256]), 16, shuffle=True)
held_out = DataLoader(TensorDataset(points[256:], names[256:]), 16)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(24):
    for x, y in learn:
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    if epoch >= 19:
        print(accuracy(model, held_out))
