"""Three of four passes are held back around backward alone, on a line of their own; forward had decided before."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(0)
draw = torch.Generator().manual_seed(dist.get_rank())
model = DistributedDataParallel(nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4)))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)


def learn(last):
    x = torch.randn(16, 12, generator=draw)
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1)) / 4
    if last:
        loss.backward()
        return
    with model.no_sync():
        loss.backward()  # expect: no-sync-missing


for _ in range(24):
    optimizer.zero_grad()
    for part in range(4):
        learn(last=part == 3)
    optimizer.step()
dist.destroy_process_group()
