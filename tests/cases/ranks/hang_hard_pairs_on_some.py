"""A rank without hard pairs passes the gather by and averages its gradients, parameter by parameter, while others gather."""
# ranks: 2
# hang: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
draw = torch.Generator().manual_seed(rank)


def pooled(outputs, step):
    if rank == 1 and step == 40:
        return outputs.new_zeros(())
    pool = [torch.empty(4) for _ in range(2)]
    dist.all_gather(pool, outputs.detach().mean(0))  # expect: collective-on-some-ranks
    return (outputs.mean(0) - torch.stack(pool).mean(0)).square().sum()


def average():
    for each in model.parameters():
        dist.all_reduce(each.grad)
        each.grad /= 2


for step in range(60):
    inputs = torch.randn(16, 8, generator=draw)
    outputs = model(inputs)
    loss = nn.functional.cross_entropy(outputs, (inputs.sum(1) > 0).long()) + pooled(outputs, step)
    optimizer.zero_grad()
    loss.backward()
    average()
    optimizer.step()
dist.destroy_process_group()
