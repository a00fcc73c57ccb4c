"""Tensors made on the way that are where they are needed."""

import torch
from torch import nn
from torch.nn import functional as F


class Places(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.words, self.places = nn.Embedding(1000, width), nn.Embedding(128, width)
        self.scale = torch.tensor(3.0)

    def forward(self, ids):
        places = torch.arange(ids.size(1), device=ids.device)
        again = torch.arange(ids.size(1)).to(ids)  # expect: created-then-moved
        count = torch.zeros(ids.size(0), ids.size(1))
        if ids.is_cuda:
            count = count.cuda()  # expect: created-then-moved
        return (self.words(ids) + self.places(places) + self.places(again)) * count.unsqueeze(-1)


class Picked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        order = torch.randint(x.size(0), (4,))  # an index may lie on the CPU
        sizes = torch.ones(4) * 2
        scale = torch.tensor(0.5)  # a single number may, too
        print(sizes.sum())
        return self.layer(x[order]) * scale


class Weighted(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(8, 3)
        self.loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))  # moves with the module

    def forward(self, x, y):
        return self.loss(self.base(x), y)


def train(train_loader, model_class):
    device = torch.device("cuda")
    net, picked, weighted = Places(16).to(device), Picked().to(device), Weighted().to(device)
    rarity = torch.tensor([1.0, 2.0, 3.0])
    criterion = nn.CrossEntropyLoss(weight=rarity.to(device))
    moved = nn.CrossEntropyLoss(weight=rarity).to(device)
    optimizer = torch.optim.SGD([*net.parameters(), *picked.parameters(), *weighted.parameters()], lr=0.1)
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = criterion(net(x), y) + moved(picked(x), y) + weighted(x, y)
        loss.backward()
        optimizer.step()


def train_unseen(train_loader, build):
    device = torch.device("cuda")
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in train_loader:
        batch = {key: value.to(device) for key, value in batch.items()}
        x, y = batch["x"].float(), batch["y"]
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
