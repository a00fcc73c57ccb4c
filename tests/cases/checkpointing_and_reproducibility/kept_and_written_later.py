"""The best state is kept by reference, and written when training has changed it; one that is cloned, or written at once."""

import torch
from torch import nn


def snapshot(net):
    return {name: t.detach() for name, t in net.state_dict().items()}  # expect: best-state-aliased


class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.net = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 2))
        self.opt = torch.optim.Adam(self.net.parameters())
        self.best = {"loss": float("inf"), "weights": None}

    def fit(self, epochs):
        for _ in range(epochs):
            total = 0.0
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.net(x), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                total += loss.item()
            if total < self.best["loss"]:
                self.best.update(loss=total, weights=snapshot(self.net))
        torch.save(self.best["weights"], "best.pt")


def cloned(net, loader, epochs):
    opt = torch.optim.Adam(net.parameters())
    best, lowest = None, float("inf")
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if loss.item() < lowest:
            lowest, best = loss.item(), {name: t.clone() for name, t in net.state_dict().items()}
        torch.save(net.state_dict(), "last.pt")
    torch.save(best, "best.pt")


if __name__ == "__main__":
    data = [(torch.randn(4, 8), torch.randint(2, (4,))) for _ in range(5)]
    Trainer(data).fit(10)
    cloned(nn.Linear(8, 2), data, 10)
