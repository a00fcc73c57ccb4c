"""The evaluation switches a part over by itself; what stands around it is in training mode all the time."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(32, 2)

    def forward(self, x):
        return self.head(self.encoder(x))


def score(model, x, y):
    model.encoder.train(False)  # expect: mode-left-in-eval step 8
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def frozen(model, x, y):
    model.encoder.requires_grad_(False)
    model.train()
    model.encoder.eval()
    return score(model, x, y)


torch.manual_seed(0)
points = torch.randn(256, 8)
names = (points.sum(1) > 0).long()
for after in (score, frozen):
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(4):
        for x, y in zip(points.split(32), names.split(32)):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(after(model, points, names))
