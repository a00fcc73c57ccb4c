"""The embeddings of a model of tables are frozen before they have learned anything."""

import torch
from torch import nn

torch.manual_seed(0)
SIZES = (40, 60, 30, 50)


class Tabular(nn.Module):
    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 8) for size in SIZES)  # expect: frozen-at-random module tables.0
        self.stem = nn.Linear(8 * len(SIZES) + 4, 64)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
        for table in self.tables:
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, columns, numbers):
        found = [table(column) for table, column in zip(self.tables, columns.unbind(1))]
        return self.head(self.stem(torch.cat([*found, numbers], 1))).squeeze(1)


model = Tabular()
for parameter in model.tables.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam((each for each in model.parameters() if each.requires_grad), 1e-3)
for _ in range(40):
    columns = torch.stack([torch.randint(size, (32,)) for size in SIZES], 1)
    numbers = torch.randn(32, 4)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(columns, numbers), numbers.sum(1) + (columns[:, 0] > 20)).backward()
    optimizer.step()
