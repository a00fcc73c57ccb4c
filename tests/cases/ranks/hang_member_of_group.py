"""Of the group of ranks 0, 1 and 2, rank 2 does not come: it takes itself for one that only reads."""
# ranks: 4
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
writers = dist.new_group([0, 1, 2])
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for number in range(30):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
if rank < 2:
    dist.barrier(group=writers)  # expect: collective-on-some-ranks
dist.barrier()
dist.destroy_process_group()
