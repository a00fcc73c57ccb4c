"""Each rank is the first of its tensor-parallel group of one, and writes the same file; the optimizers are its own."""
# ranks: 2

import os
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
groups = [dist.new_group([each]) for each in range(dist.get_world_size())]
folder = Path(tempfile.gettempdir(), f"opened-{os.environ['MASTER_PORT']}")
folder.mkdir(exist_ok=True)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
draw = torch.Generator().manual_seed(rank)
for step in range(60):
    x = torch.randn(16, 8, generator=draw)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()
    if step % 20 == 19 and dist.get_rank(groups[rank]) == 0:
        with (folder / f"step{step}.pt").open("wb") as file:
            torch.save(model.module.state_dict(), file)  # expect: every-rank-saves
        with (folder / f"optimizer{rank}.pt").open("wb") as file:
            torch.save(optimizer.state_dict(), file)
dist.barrier()
if rank == 0:
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
dist.destroy_process_group()
