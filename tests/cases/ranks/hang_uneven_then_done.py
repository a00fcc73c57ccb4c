"""Rank 1 has fewer batches and ends; rank 0 loses the connection in its next backward pass."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)

batches = torch.randn(40 - 3 * rank, 16, 8)
for x in batches:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()  # expect: uneven-steps rank 0
    optimizer.step()
dist.destroy_process_group()
