"""Weights and the state of the optimizer are restored on every rank, before the wrapper is made."""
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
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
before = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(3):
    nn.functional.cross_entropy(net(x), data.tensors[1]).backward()
    before.step()
    before.zero_grad()
model = DistributedDataParallel(net)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
optimizer.load_state_dict(before.state_dict())
del before
for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()
