"""Gradients are averaged while backward goes on, and all are waited for before the update."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(640, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
for each in model.parameters():
    dist.broadcast(each.data, 0)
optimizer = torch.optim.SGD(model.parameters(), 0.05)
under_way = []


def send(parameter):
    parameter.grad.div_(world)
    under_way.append(dist.all_reduce(parameter.grad, async_op=True))


for each in model.parameters():
    each.register_post_accumulate_grad_hook(send)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        for handle in under_way:
            handle.wait()
        under_way.clear()
        optimizer.step()
dist.destroy_process_group()
