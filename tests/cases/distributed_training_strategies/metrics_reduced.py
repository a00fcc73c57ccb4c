"""Figures that are added up over the ranks."""

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


@torch.no_grad()
def validate(model: nn.Module, dataset, device):
    loader = DataLoader(dataset, 64, sampler=DistributedSampler(dataset, shuffle=False))
    model.eval()
    counts = torch.zeros(2, device=device)
    for images, labels in loader:
        right = (model(images.to(device)).argmax(1) == labels.to(device)).sum()
        counts += torch.stack([right, torch.tensor(labels.size(0), device=device)])
    dist.all_reduce(counts)
    return (counts[0] / counts[1]).item()
