"""Each rank draws samples of the whole set by chance, for as many steps as are wanted."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
sampler = RandomSampler(data, replacement=True, num_samples=256, generator=torch.Generator().manual_seed(rank))
loader = DataLoader(data, batch_size=16, sampler=sampler)
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()
