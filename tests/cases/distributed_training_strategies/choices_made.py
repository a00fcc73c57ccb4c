"""Batch statistics over all ranks, or over batches that are large enough."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten())

    def forward(self, images):
        return self.layers(images)


def large(dataset, local_rank: int):
    loader = DataLoader(dataset, batch_size=256, sampler=DistributedSampler(dataset))
    model = DDP(Classifier().to(local_rank), device_ids=[local_rank])
    return model, loader


def unknown(dataset, local_rank: int, args):
    loader = DataLoader(dataset, batch_size=args.batch_size, sampler=DistributedSampler(dataset))
    return DDP(Classifier().to(local_rank), device_ids=[local_rank]), loader
