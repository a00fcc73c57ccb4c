"""Ranks with something to tell gather it; the others, with nothing to tell, go on to the barrier."""
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


notes = []
for number in range(40):
    step(torch.randn(16, 8))
    if rank == 0 and number % 10 == 0:
        notes.append(number)
if notes:
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, notes)  # expect: collective-on-some-ranks rank 0
dist.barrier()
dist.destroy_process_group()
