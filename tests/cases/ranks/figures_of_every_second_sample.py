"""Validation losses over every second sample, which decide on each rank whether it has improved."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Subset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x.sum(1) > 0).long()
train, held = TensorDataset(x[:384], y[:384]), TensorDataset(x[384:], y[384:])
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=16, sampler=sampler)
held_loader = DataLoader(Subset(held, range(rank, len(held), world)), batch_size=16)
best = float("inf")
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)


def validate():
    model.eval()
    losses = []
    with torch.no_grad():
        for inputs, targets in held_loader:
            losses.append(nn.functional.cross_entropy(model(inputs), targets))
    return torch.stack(losses).mean().item()  # expect: metrics-not-reduced


for epoch in range(5):
    sampler.set_epoch(epoch)
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    found = validate()
    if found < best:
        best = found
        if rank == 0:
            print("better", found)
dist.destroy_process_group()
