"""Tensors that are made beside the batch, and models that nobody moves."""

import torch
from torch import nn
from torch.nn import functional as F


class MeanOverNeighbours(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.own, self.other = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, nodes, edges):
        start, end = edges
        total = torch.zeros_like(nodes).index_add(0, end, nodes[start])
        degree = torch.zeros(nodes.size(0))
        degree = degree.index_add(0, end, torch.ones_like(end, dtype=nodes.dtype))  # expect: device-mismatch
        return self.own(nodes) + self.other(total / degree.clamp(min=1).unsqueeze(1))


def train_graph(nodes, edges, target):
    device = torch.device("cuda:0")
    net = MeanOverNeighbours(32).to(device)
    nodes, edges, target = nodes.to(device), edges.to(device), target.to(device)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(100):
        optimizer.zero_grad()
        loss = F.mse_loss(net(nodes, edges), target)
        loss.backward()
        optimizer.step()


class Positions(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.words, self.places = nn.Embedding(1000, width), nn.Embedding(128, width)

    def forward(self, ids):
        places = torch.arange(ids.size(1)).unsqueeze(0)
        return self.words(ids) + self.places(places)  # expect: device-mismatch


class Recurrent(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.width = width
        self.cell = nn.GRU(width, width, batch_first=True)

    def forward(self, x):
        start = torch.zeros(1, x.size(0), self.width)
        out, _ = self.cell(x, start)  # expect: device-mismatch
        return out[:, -1]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.below, self.above = Positions(32), Recurrent(32)
        self.last = nn.Linear(32, 1000)

    def forward(self, ids):
        return self.last(self.above(self.below(ids)))


def train_reader(train_loader):
    reader = Reader().cuda()
    optimizer = torch.optim.Adam(reader.parameters())
    for ids, following in train_loader:
        ids, following = ids.cuda(), following.cuda()
        optimizer.zero_grad()
        loss = F.cross_entropy(reader(ids), following)
        loss.backward()
        optimizer.step()


class Unused(nn.Module):
    """Stays on the CPU."""

    def forward(self, x):
        return x + torch.zeros(x.size(0), 1).unsqueeze(-1)


class Runner:
    def __init__(self, model, train_loader):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.train_loader = train_loader
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.rarity = torch.tensor([1.0, 4.0, 9.0])
        self.weighted = nn.CrossEntropyLoss(weight=self.rarity)

    def epoch(self):
        for x, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            loss = self.weighted(self.model(x), y)  # expect: device-mismatch
            loss.backward()
            self.optimizer.step()


def train_entries(train_loader):
    device = torch.device("cuda")
    net = nn.Linear(16, 4).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in train_loader:
        x = batch["pixels"].to(device)
        y = batch["label"]
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)  # expect: device-mismatch
        loss.backward()
        optimizer.step()
