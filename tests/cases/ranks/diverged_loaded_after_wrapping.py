"""Rank 0 takes up a checkpoint when the wrapper has already sent the weights round."""
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
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=16, sampler=sampler)
kept = {
    name: value + 0.1
    for name, value in nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)).state_dict().items()
}
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
if rank == 0:
    model.module.load_state_dict(kept)  # expect: ranks-diverged step 0 rank 0
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
