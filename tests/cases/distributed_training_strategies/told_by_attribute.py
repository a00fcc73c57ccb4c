"""The epoch is set on the sampler itself."""

import torch
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main(model: nn.Module, dataset, epochs):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, 32, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        sampler.epoch = epoch
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
