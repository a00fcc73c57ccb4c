"""Tensors that are no plain ones: ragged, sparse, fake, on meta, of a class of their own, complex."""

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

torch.manual_seed(0)


class Tagged(torch.Tensor):
    pass


def learn(model, make, rate=1e-2):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(20):
        optimizer.zero_grad()
        make(model).backward()
        optimizer.step()


def ragged(model):
    words = [torch.randint(20, (int(length),)) for length in torch.randint(2, 9, (8,))]
    nested = torch.nested.nested_tensor(words, layout=torch.jagged)
    return nn.functional.cross_entropy(model(nested).values(), (nested.values() + 1) % 20)


def tagged(model):
    x = torch.randn(16, 6)
    return nn.functional.cross_entropy(model(x.as_subclass(Tagged)), (x[:, 0] > 0).long())


class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(9, dtype=torch.cfloat) / 9)

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=16)


def filtered(model):
    x = torch.randn(8, 16)
    return nn.functional.mse_loss(model(x), x.roll(1, 1))


class OnGraph(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 16), nn.Linear(16, 2)

    def forward(self, neighbours, x):
        return self.outer(torch.sparse.mm(neighbours, self.inner(x).relu()))


def on_graph(model):
    neighbours = (torch.rand(30, 30) < 0.2).float().to_sparse()
    x = torch.randn(30, 8)
    return nn.functional.cross_entropy(model(neighbours, x), (torch.sparse.mm(neighbours, x)[:, 0] > 0).long())


with FakeTensorMode():
    shapes_only = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 1))
    shapes_only(torch.randn(3, 8)).sum().backward()
with torch.device("meta"):
    sized = nn.Linear(8, 16)
sized(torch.empty(4, 8, device="meta")).sum().backward()
learn(nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20)), ragged)
learn(nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2)), tagged)
learn(Filter(), filtered)
learn(OnGraph(), on_graph)
table, rows = nn.Embedding(50, 8, sparse=True), torch.randint(50, (16,))
sparse = torch.optim.SparseAdam(table.parameters(), 1e-2)
for _ in range(20):
    sparse.zero_grad()
    (table(rows) - 1).square().mean().backward()
    sparse.step()
