"""Counts by class are summed over the ranks, and each rank has as many counts as classes it has seen."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 5)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for number in range(40):
    x = torch.randn(16, 8)
    y = (x.sum(1) > 0).long() + 2 * rank
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
counts = torch.bincount(y).float()
dist.all_reduce(counts)  # expect: collective-on-some-ranks
print(counts)
dist.destroy_process_group()
