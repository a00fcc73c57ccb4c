"""Rank 0 logs and saves every 30 steps, which takes it a while: seldom enough to cost nothing."""
# ranks: 2

import io
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(20, 200), nn.ReLU(), nn.Linear(200, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
draw = torch.Generator().manual_seed(dist.get_rank())
for step in range(120):
    x = torch.randn(256, 20, generator=draw)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    if step % 30 == 0 and dist.get_rank() == 0:
        torch.save(model.module.state_dict(), io.BytesIO())
        time.sleep(0.05)
dist.destroy_process_group()
