"""The evaluation switches the model over, and nothing switches it back."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.body(x))


@torch.no_grad()
def accuracy(model, loader):
    model.eval()  # expect: mode-left-in-eval step 16
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


def fit(model, train, held_out):
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(3):
        for x, y in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(accuracy(model, held_out))


torch.manual_seed(0)
points = torch.randn(384, 8)
names = (points.sum(1) > 0).long()
learn = DataLoader(TensorDataset(points[:256], names[:256]), 16, shuffle=True)
fit(Tagger(), learn, DataLoader(TensorDataset(points[256:], names[256:]), 64))
