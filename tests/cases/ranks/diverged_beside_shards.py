"""The trunk is sharded, the head is not, and nobody averages its gradients."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
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
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 2)

    def forward(self, inputs):
        return self.head(self.trunk(inputs))


model = Net()
fully_shard(model.trunk)
optimizer = torch.optim.SGD(model.parameters(), 0.05, foreach=False)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()  # expect: ranks-diverged module head.weight
dist.destroy_process_group()
