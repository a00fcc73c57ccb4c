"""The centres of the loss have an optimizer of their own, and no rank hears of the others' gradients."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class Centres(nn.Module):
    def __init__(self):
        super().__init__()
        self.places = nn.Parameter(torch.randn(4, 16))

    def forward(self, inner, labels):
        return (inner - self.places[labels]).square().sum(1).mean()


trunk = DistributedDataParallel(nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 16)))
centres = Centres()
optimizer = torch.optim.SGD(trunk.parameters(), 0.05)
second = torch.optim.SGD(centres.parameters(), 0.5)
means = torch.randn(4, 8)
draw = torch.Generator().manual_seed(rank + 1)
for _ in range(60):
    labels = torch.randint(4, (32,), generator=draw)
    inner = trunk(means[labels] + torch.randn(32, 8, generator=draw))
    optimizer.zero_grad()
    second.zero_grad()
    loss = nn.functional.cross_entropy(inner[:, :4], labels) + 0.1 * centres(inner, labels)
    loss.backward()
    optimizer.step()
    second.step()  # expect: ranks-diverged module places
dist.destroy_process_group()
