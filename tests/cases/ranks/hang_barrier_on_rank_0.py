"""After each checkpoint rank 0 waits at a barrier to which the others never come."""
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


for number in range(60):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    if number % 25 == 24 and rank == 0:
        state = {name: value.clone() for name, value in model.state_dict().items()}
        dist.barrier()  # expect: collective-on-some-ranks rank 0
dist.destroy_process_group()
