"""Each rank shuffles a half of its own."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
half = Subset(data, range(rank * 256, rank * 256 + 256))
loader = DataLoader(half, batch_size=16, shuffle=True)
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()
