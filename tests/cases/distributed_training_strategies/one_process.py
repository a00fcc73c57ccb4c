"""A program that wraps a model where an option asks for it, and joins no group."""

import json
import os

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel


class Keeper:
    def __init__(self, options: dict):
        self.options = options
        self.net = self.wrap(nn.Linear(4, 4))

    def wrap(self, net: nn.Module) -> nn.Module:
        if self.options["dist"]:
            return DistributedDataParallel(net.cuda(), device_ids=[torch.cuda.current_device()])
        return DataParallel(net.cuda())  # expect: data-parallel-used

    def save(self, folder: str, label: str):
        torch.save(self.net.module.state_dict(), os.path.join(folder, f"{label}.pth"))


def main():
    options = json.load(open("options.json"))
    options.setdefault("dist", False)
    keeper = Keeper(options)
    optimizer = torch.optim.Adam(keeper.net.parameters())
    for step in range(1000):
        optimizer.zero_grad()
        keeper.net(torch.randn(8, 4, device="cuda")).mean().backward()
        optimizer.step()
    keeper.save("out", "latest")


if __name__ == "__main__":
    main()
