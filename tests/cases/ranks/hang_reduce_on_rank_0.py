"""The mean of the loss is taken by rank 0 alone, which waits for the other in vain."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for step in range(60):
    x = torch.randn(16, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19 and dist.get_rank() == 0:
        mean = loss.detach().clone()
        dist.all_reduce(mean)  # expect: collective-on-some-ranks
        print(step, mean.item() / dist.get_world_size())
dist.destroy_process_group()
