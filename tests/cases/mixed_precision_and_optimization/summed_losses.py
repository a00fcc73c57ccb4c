"""Sums over all examples, which need no division when batches are added up."""

import torch
from torch import nn

net = nn.Linear(8, 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-4)


def chi2(pred, y, sigma):
    return (((pred - y) / sigma) ** 2).sum()


def nll(mu, y):
    return -torch.distributions.Normal(mu, 0.1).log_prob(y).sum()


def epoch(loader, accum=8):
    for i, (x, y) in enumerate(loader):
        nll(net(x), y).backward()
        if (i + 1) % accum == 0:
            opt.step()
            opt.zero_grad()


def full(X, Y, n_chunks=4):
    for epoch in range(100):
        opt.zero_grad()
        for x, y in zip(X.chunk(n_chunks), Y.chunk(n_chunks)):
            resid = net(x) - y
            loss = resid.pow(2).sum()
            loss.backward()
        opt.step()
