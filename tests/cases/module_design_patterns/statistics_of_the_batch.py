"""Batch norm that keeps no statistics computes the same in either mode; and a prior that is moved where it has to."""

import torch
from torch import nn


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.ReLU())
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x))


def evaluate_tasks(model, loss_fn, tasks):
    for x, y, x_test, y_test in tasks:
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            loss = loss_fn(model(x), y)
            model.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            print(float(loss_fn(model(x_test), y_test)))


class Prior(nn.Module):
    def __init__(self, d, fixed):
        super().__init__()
        scale = torch.ones(d)
        if fixed:
            self.scale = scale
        else:
            self.scale = nn.Parameter(scale)

    def forward(self, x):
        if x.device != self.scale.device:
            self.scale = self.scale.to(x.device)
        return (x / self.scale).pow(2).sum(-1)


if __name__ == "__main__":
    data = [(torch.randn(6, 8), torch.zeros(6).long(), torch.randn(6, 8), torch.zeros(6).long())] * 3
    evaluate_tasks(Tiny(), nn.CrossEntropyLoss(), data)
