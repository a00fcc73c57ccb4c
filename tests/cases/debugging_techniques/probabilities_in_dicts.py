"""Probabilities that travel in dicts, out of lists of layers, and to losses that are kept in dicts or are defaults."""

import torch
from torch import nn


class Listed(nn.Module):
    def __init__(self, classes):
        super().__init__()
        layers = [nn.Linear(8, 16), nn.ReLU()]
        layers.append(nn.Linear(16, classes))
        layers.append(nn.Softmax(dim=1))  # expect: softmax-before-cross-entropy
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class ListedRight(nn.Module):
    def __init__(self, classes, *, probabilities=False):
        super().__init__()
        layers = [nn.Linear(8, 16), nn.ReLU()]
        layers.append(nn.Linear(16, classes))
        if probabilities:
            layers.append(nn.Softmax(dim=1))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


class Named(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        return {"logits": torch.softmax(self.head(x), -1), "features": x}  # expect: softmax-before-cross-entropy


class NamedRight(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        logits = self.head(x)
        return {"logits": logits, "probabilities": torch.softmax(logits, -1)}


def fit(net, loader, criterion=nn.CrossEntropyLoss()):
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()


def fit_listed(loader, criterion=nn.CrossEntropyLoss()):
    net, right = Listed(3), ListedRight(3)
    optimizer = torch.optim.Adam([*net.parameters(), *right.parameters()])
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y) + criterion(right(x), y)
        loss.backward()
        optimizer.step()


def fit_named(loader):
    losses = {"ce": nn.CrossEntropyLoss(), "mse": nn.MSELoss()}
    net, right = Named(3), NamedRight(3)
    optimizer = torch.optim.Adam([*net.parameters(), *right.parameters()])
    for x, y in loader:
        optimizer.zero_grad()
        loss = losses["ce"](net(x)["logits"], y) + losses["ce"](right(x)["logits"], y)
        loss = loss + losses["mse"](right(x)["probabilities"], y)
        loss.backward()
        optimizer.step()


def fit_put(model, loader, optimizer):
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        out, right = {}, {}
        out["cls"] = torch.softmax(model(x), dim=-1)  # expect: softmax-before-cross-entropy
        right["cls"] = model(x)
        right["shown"] = right["cls"].softmax(-1)
        loss = criterion(out["cls"], y) + criterion(right["cls"], y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    fit(ListedRight(3), [])
