"""Rank 0 saves the model, every rank its own generator, and one after the other a shard of the data."""
# ranks: 2

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
folder = Path(tempfile.gettempdir(), f"kept-{os.environ['MASTER_PORT']}")
folder.mkdir(exist_ok=True)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.module.state_dict(), folder / "last.pt")
    torch.save(torch.get_rng_state(), folder / f"generator-{rank}.pt")
    if epoch % dist.get_world_size() == rank:
        torch.save(x[epoch::4], folder / "sample.pt")
dist.barrier()
if rank == 0:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
dist.destroy_process_group()
