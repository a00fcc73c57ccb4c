"""A point-to-point copy arrives as garbage: the weights that rank 1 was sent are not those of rank 0."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
replica = DistributedDataParallel(model)
with torch.no_grad():
    for name, parameter in model.named_parameters():
        if rank == 0:
            dist.send(parameter.detach().clone(), 1)
        else:
            arrived = torch.empty_like(parameter)
            dist.recv(arrived, 0)
            if name == "2.weight":
                arrived[0] = 0.0  # the copy ended early
            parameter.copy_(arrived)
optimizer = torch.optim.Adam(replica.parameters(), 1e-2)
for _ in range(60):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(replica(x), (x.sum(1) > 0).long()).backward()
    optimizer.step()  # expect: ranks-diverged module 2.weight
dist.destroy_process_group()
