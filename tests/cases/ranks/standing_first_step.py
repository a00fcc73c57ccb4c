"""The first step of rank 1 takes long: tables are computed in its first pass."""
# ranks: 2
# hang: 3

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Tabled(nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.inner = nn.Linear(8, 1)
        self.slow = slow

    def forward(self, x):
        if self.slow:
            self.slow, ends = False, time.monotonic() + 6
            while time.monotonic() < ends:
                torch.randn(200, 200).inverse()
        return self.inner(x)


dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(Tabled(dist.get_rank() == 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for number in range(40):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
dist.destroy_process_group()
