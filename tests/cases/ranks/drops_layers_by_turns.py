"""Layers are dropped at random, the same on all ranks: the search for unused parameters is needed."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))
        self.last = nn.Linear(16, 1)
        self.draw = torch.Generator().manual_seed(1)

    def forward(self, x):
        for layer in self.inner:
            if torch.rand(1, generator=self.draw) > 0.3:
                x = x + torch.tanh(layer(x)) / 2
        return self.last(x)


dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(Deep(), find_unused_parameters=True)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(80):
    x = torch.randn(32, 16, generator=draw)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x[:, :1]).backward()
    optimizer.step()
dist.destroy_process_group()
