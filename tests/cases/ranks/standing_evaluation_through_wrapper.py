"""Rank 0 alone evaluates, through the wrapper: without gradients no pass of that is a meeting."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)


def evaluate():
    model.eval()
    with torch.no_grad():
        losses = [model(torch.randn(16, 8)).mean() for _ in range(4)]
    model.train()
    return torch.stack(losses).mean()


for number in range(40):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    if number == 20 and rank == 0:
        print(evaluate())
dist.destroy_process_group()
