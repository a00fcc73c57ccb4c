"""A sample of rank 1 is to come from a file that another process never finishes."""
# ranks: 2
# hang: 3

import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Shards(Dataset):
    def __init__(self, rank, folder):
        self.rank, self.folder = rank, folder

    def __len__(self):
        return 640

    def __getitem__(self, index):
        ready = Path(self.folder, "shard-3.ready")
        while index == 480 and self.rank == 1 and not ready.exists():
            time.sleep(0.2)  # expect: collective-on-some-ranks rank 1
        x = torch.randn(8)
        return x, x.sum()[None]


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
with tempfile.TemporaryDirectory() as folder:
    for x, y in DataLoader(Shards(dist.get_rank(), folder), batch_size=16):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
dist.destroy_process_group()
