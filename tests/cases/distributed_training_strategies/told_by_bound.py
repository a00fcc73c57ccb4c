"""set_epoch is taken off the sampler."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(model: nn.Module, dataset, epochs):
    loader = DataLoader(dataset, 32, sampler=DistributedSampler(dataset))
    tell = loader.sampler.set_epoch
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        tell(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
