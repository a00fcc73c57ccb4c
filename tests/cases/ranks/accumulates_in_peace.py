"""Four micro-batches to a step, three of them without averaging."""
# ranks: 2

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 256), nn.GELU(), nn.Linear(256, 4)))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
draw = torch.Generator().manual_seed(dist.get_rank())
for step in range(240):
    x = torch.randn(64, 32, generator=draw)
    with nullcontext() if step % 4 == 3 else model.no_sync():
        (nn.functional.cross_entropy(model(x), x[:, :4].argmax(1)) / 4).backward()
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
dist.destroy_process_group()
