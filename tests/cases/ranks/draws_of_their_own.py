"""Every rank draws its batches with a seed of its own, after the model was made with one seed."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
torch.manual_seed(rank)
for step in range(80):
    inputs = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), (inputs.sum(1) > 0).long()).backward()
    optimizer.step()
dist.destroy_process_group()
