"""A criterion that sums; what is counted between steps need not be batches."""

import torch
import torch.nn.functional as F
from torch import nn

net = nn.Linear(8, 3)
criterion = nn.CrossEntropyLoss(reduction="sum")
opt = torch.optim.SGD(net.parameters(), lr=1e-4)


def epoch(loader, accum=8):
    for i, (x, y) in enumerate(loader):
        loss = criterion(net(x), y)
        loss.backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()

tasks = ["depth", "normal", "seg"]
nets = nn.ModuleDict({t: nn.Linear(8, 4) for t in tasks})
both = torch.optim.Adam(nets.parameters(), lr=1e-4)


def train(batches):
    for k, (task, x, y) in enumerate(batches):
        loss = F.mse_loss(nets[task](x), y)
        loss.backward()
        if (k + 1) % len(tasks) == 0:
            both.step()
            both.zero_grad()


def rnn(cell, xs, ys, tbptt=16):
    h = torch.zeros(1, 8)
    o = torch.optim.SGD(cell.parameters(), lr=0.01)
    for t in range(len(xs)):
        h = cell(xs[t], h.detach())
        loss = F.mse_loss(h, ys[t])
        loss.backward()
        if (t + 1) % tbptt == 0:
            o.step()
            o.zero_grad()
