"""Choices with a better one beside them."""

import subprocess

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def on_all_devices(model: nn.Module):
    if torch.cuda.device_count() > 1:
        model = nn.DataParallel(model)  # expect: data-parallel-used
    return model.cuda()


def start(script: str, devices: int):
    subprocess.run(["python", "-m", "torch.distributed.launch", f"--nproc_per_node={devices}", script], check=True)  # expect: data-parallel-used


def start_anew(script: str, devices: int):
    """Formerly: python -m torch.distributed.launch train.py."""
    subprocess.run(["torchrun", f"--nproc-per-node={devices}", script], check=True)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 2, 1))

    def forward(self, images):
        return self.layers(images)


def segment(dataset, local_rank: int):
    loader = DataLoader(dataset, batch_size=2, sampler=DistributedSampler(dataset))
    model = DDP(Segmenter().to(local_rank), device_ids=[local_rank])  # expect: batchnorm-not-synced
    return model, loader
