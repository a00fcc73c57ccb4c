"""The two ranks take the mean of the loss and of the norms in another order."""
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


def step(x):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()


loss, norms = torch.zeros(1), torch.zeros(64)
for number in range(40):
    step(torch.randn(16, 8))
figures = [loss, norms] if rank == 0 else [norms, loss]
for figure in figures:
    dist.all_reduce(figure)  # expect: collective-on-some-ranks
dist.destroy_process_group()
