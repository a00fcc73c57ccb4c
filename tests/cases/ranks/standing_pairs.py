"""Broadcasts at different lines, sends with their other half, a group that all make and two use."""
# ranks: 4
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
pair = dist.new_group([0, 1])
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
rate = torch.zeros(1)
for number in range(40):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    if rank == 0:
        rate += 1
        dist.broadcast(rate, src=0)
    else:
        dist.broadcast(rate, src=0)
    if rank == 0:
        dist.send(rate, dst=3)
    elif rank == 3:
        dist.recv(rate, src=0)
    if rank < 2:
        dist.all_reduce(torch.ones(3 + number), group=pair)
gathered = [torch.zeros(1) for _ in range(4)] if rank == 2 else None
dist.gather(rate, gathered, dst=2)
dist.barrier()
dist.destroy_process_group()
