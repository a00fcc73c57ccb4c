"""Rank 0 sends its best score to rank 1, which does not ask for it when its own is better."""
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


for number in range(40):
    step(torch.randn(16, 8))
score = torch.tensor([0.5 + rank])
if rank == 0:
    dist.send(score, dst=1)  # expect: collective-on-some-ranks rank 0
elif score < 1:
    dist.recv(score, src=0)
dist.barrier()
dist.destroy_process_group()
