"""The loss is computed by the model that DistributedDataParallel wraps, not by the wrapper."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
replica = DistributedDataParallel(model)
optimizer = torch.optim.Adam(replica.parameters(), 1e-2)
for _ in range(60):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()  # expect: wrapper-bypassed
    optimizer.step()
dist.destroy_process_group()
