"""A debugging aid that was left in: the forward pass of rank 2 alone checks its activations, with a pause."""
# ranks: 3

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(24, 64)
        self.last = nn.Linear(64, 1)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        if rank == 2:
            time.sleep(0.015)  # expect: straggler rank 2
        return self.last(hidden)


torch.manual_seed(0)
model = DistributedDataParallel(Net())
optimizer = torch.optim.SGD(model.parameters(), 0.01)
generator = torch.Generator().manual_seed(rank)
for _ in range(90):
    x = torch.randn(16, 24, generator=generator)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
dist.destroy_process_group()
