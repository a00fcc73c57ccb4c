"""A program of one process, whose helper asks whether there are several."""

import torch
import torch.distributed as dist
from torch import nn


def ranks():
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def mean_over_ranks(value):
    if ranks() < 2:
        return value
    with torch.no_grad():
        dist.all_reduce(value)
        return value / ranks()


def main():
    net = nn.Linear(4, 2)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for _ in range(100):
            loss = nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(2, (8,)))
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(mean_over_ranks(loss.detach()))
        torch.save(net.state_dict(), f"net-{epoch}.pth")


if __name__ == "__main__":
    main()
