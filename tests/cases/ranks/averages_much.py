"""A wide layer over a few samples: the gradients of five million weights cross for every step of little arithmetic."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 512)))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(90):
    x = torch.randn(2, 2048, generator=draw)
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), x[:, :512])
    loss.backward()  # expect: communication-bound
    optimizer.step()
dist.destroy_process_group()
