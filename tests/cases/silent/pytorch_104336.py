"""The wrapped model is moved there and back, which makes new parameters: the hooks of the wrapper are on the old ones."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
replica = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
for module in replica.module.modules():
    for name, parameter in list(module.named_parameters(recurse=False)):
        setattr(module, name, nn.Parameter(parameter.detach().double().float()))
optimizer = torch.optim.Adam(replica.parameters(), 1e-2)
torch.manual_seed(dist.get_rank() + 1)
for _ in range(60):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(replica(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()  # expect: ranks-diverged module 0.weight
dist.destroy_process_group()
