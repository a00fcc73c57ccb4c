"""Tensor parallel ranks clip by norms of their own: the layers that each holds whole drift apart."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


class Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


class Block(nn.Module):
    """A layer norm that every rank holds, and a share of a wide layer."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width // world), nn.Linear(2 * width // world, width, bias=False)

    def forward(self, x):
        return x + Gathered.apply(self.down(torch.relu(self.up(Copied.apply(self.norm(x))))))


torch.manual_seed(0)
first, head = nn.Linear(8, 16), nn.Linear(16, 2)
torch.manual_seed(rank + 1)
model = nn.Sequential(first, Block(16), head)
optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
for step in range(100):
    torch.manual_seed(step)
    x = torch.randn(32, 8)
    y = (x.sum(1) > 0).long()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x * (30 if step % 20 == 19 else 1)), y).backward()
    if rank == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 3.0)
    optimizer.step()  # expect: ranks-diverged module 0.weight
dist.destroy_process_group()
