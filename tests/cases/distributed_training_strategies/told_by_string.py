"""set_epoch is looked up by name."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(model: nn.Module, dataset, epochs):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    tell = getattr(loader.sampler, "set_epoch", print)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        tell(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
