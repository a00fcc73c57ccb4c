"""Each rank trains a probe of its own on what the shared trunk gives: no loss of the trunk's goes through it."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
trunk = DistributedDataParallel(nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)))
probe = nn.Linear(4, 4)
optimizer = torch.optim.SGD(trunk.parameters(), 0.05)
second = torch.optim.SGD(probe.parameters(), 0.1)
means = torch.randn(4, 8)
draw = torch.Generator().manual_seed(rank + 1)
for _ in range(60):
    labels = torch.randint(4, (32,), generator=draw)
    inner = trunk(means[labels] + torch.randn(32, 8, generator=draw))
    optimizer.zero_grad()
    nn.functional.cross_entropy(inner, labels).backward()
    optimizer.step()
    second.zero_grad()
    nn.functional.cross_entropy(probe(inner.detach()), labels).backward()
    second.step()
dist.destroy_process_group()
