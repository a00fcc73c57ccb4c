"""Feeds each process of a data-parallel training its share of the samples."""

import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def make_loader(samples, rank, world, batch=4):
    dataset = TensorDataset(torch.arange(samples))
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, shuffle=True, seed=3)
    return DataLoader(dataset, batch_size=batch, sampler=sampler)


def train(samples, rank, world, epochs, visit):
    """Calls visit(epoch, indices) for every batch that this rank trains on."""
    loader = make_loader(samples, rank, world)
    for epoch in range(epochs):
        for (indices,) in loader:
            visit(epoch, indices.tolist())
