"""The figures of all epochs are averaged over the ranks once, at the end."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

history = []

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
x = torch.randn(512, 8)
y = (x.sum(1) > 0).long()
train, held = TensorDataset(x[:384], y[:384]), TensorDataset(x[384:], y[384:])
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=16, sampler=sampler)
held_loader = DataLoader(held, batch_size=16, sampler=DistributedSampler(held, shuffle=False))
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)


@torch.no_grad()
def accuracy():
    model.eval()
    right, seen = 0, 0
    for inputs, targets in held_loader:
        right += (model(inputs).argmax(1) == targets).sum().item()
        seen += len(targets)
    return right / seen


for epoch in range(5):
    sampler.set_epoch(epoch)
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    history.append(accuracy())
means = torch.tensor(history)
dist.all_reduce(means)
if rank == 0:
    print((means / world).tolist())
dist.destroy_process_group()
