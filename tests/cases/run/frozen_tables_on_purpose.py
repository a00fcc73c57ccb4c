"""Tables that are to stay as they are: one-hot codes, vectors from elsewhere, positions, and prototypes at random."""

import torch
from torch import nn

torch.manual_seed(0)
SIZES = (40, 60, 30)


class Tabular(nn.Module):
    def __init__(self, tables):
        super().__init__()
        self.tables = nn.ModuleList(tables)
        self.stem = nn.Linear(sum(each.embedding_dim for each in tables), 64)
        self.head = nn.Sequential(nn.ReLU(), nn.Linear(64, 1))

    def forward(self, columns):
        found = [table(column) for table, column in zip(self.tables, columns.unbind(1))]
        return self.head(self.stem(torch.cat(found, 1))).squeeze(1)


def waves(size):
    return torch.sin(torch.arange(size)[:, None] / 10 ** torch.linspace(0, 2, 16))


def copied(size):
    """As vectors of words are, whose numbers are nearly normal."""
    table = nn.Embedding(size, 16)
    table.weight.data.copy_(torch.randn(size, 16) * 0.4)
    return table


def coded():
    return [nn.Embedding.from_pretrained(torch.eye(size)) for size in SIZES]


def placed():
    return [nn.Embedding.from_pretrained(waves(size)) for size in SIZES]


def worded():
    return [copied(size).requires_grad_(False) for size in SIZES]


def two_of_three():
    return [nn.Embedding(size, 16).requires_grad_(size == 40) for size in SIZES]


for made in (coded, placed, worded, two_of_three):
    model = Tabular(made())
    optimizer = torch.optim.Adam((each for each in model.parameters() if each.requires_grad), 1e-3)
    for _ in range(40):
        columns = torch.stack([torch.randint(size, (32,)) for size in SIZES], 1)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(columns), (columns[:, 0] > 20).float()).backward()
        optimizer.step()
