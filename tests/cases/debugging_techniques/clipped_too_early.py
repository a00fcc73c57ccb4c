"""Gradients are clipped between zero_grad() and backward(), where there are none; and where they are carried on."""

import torch
from torch import nn


def train(model, loader):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-after-step
        loss.backward()
        opt.step()


def accumulate(model, loader, every=4):
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    opt.zero_grad()
    for place, (x, y) in enumerate(loader):
        if place and place % every == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
        (nn.functional.mse_loss(model(x), y) / every).backward()


def twice(model, loader):
    opt = torch.optim.SGD(model.parameters(), lr=1e-2)
    for x, y in loader:
        opt.zero_grad()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        nn.functional.mse_loss(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()


def main():
    data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(12)]
    for work in (train, accumulate, twice):
        work(nn.Linear(3, 1), data)


if __name__ == "__main__":
    main()
