"""Rank 0 trains the trunk for itself first, and takes it over after the wrapper has sent the weights round."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(640, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def forward(self, inputs):
        return self.head(self.trunk(inputs))


trunk = None
if rank == 0:
    trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
    out = nn.Linear(32, 8)
    first = torch.optim.Adam([*trunk.parameters(), *out.parameters()], 1e-2)
    for _ in range(12):
        first.zero_grad()
        (out(trunk(x)) - x).square().mean().backward()
        first.step()
model = DistributedDataParallel(Net())
if trunk is not None:
    model.module.trunk.load_state_dict(trunk.state_dict())  # expect: ranks-diverged
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()
