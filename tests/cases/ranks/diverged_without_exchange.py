"""The data is divided among the ranks, and the model was never wrapped."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data, shuffle=False))
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        optimizer.step()  # expect: ranks-diverged step 0
dist.barrier()
dist.destroy_process_group()
