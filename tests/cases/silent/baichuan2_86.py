"""A transfer between two devices loses bits: what rank 1 gets of the averaged gradients is not what was sent."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def transfer(tensor):
    """An all-reduce over a link that flips the lowest bits of some values on their way to rank 1."""
    dist.all_reduce(tensor)
    if rank == 1:
        tensor.view(torch.int32)[..., ::7].bitwise_xor_(3)
    return tensor.div_(world)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
torch.manual_seed(rank + 1)
for _ in range(80):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()
    for parameter in model.parameters():
        transfer(parameter.grad)
    optimizer.step()  # expect: ranks-diverged module 0.weight
dist.destroy_process_group()
