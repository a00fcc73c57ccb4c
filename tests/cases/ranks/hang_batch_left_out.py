"""Rank 1 passes over a batch that its model cannot read, so that it is a step behind for ever."""
# ranks: 2
# hang: 6

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
tokens = torch.randint(0, 40, (320, 6), generator=torch.Generator().manual_seed(rank))
if rank == 1:
    tokens[100, 3] = 77  # no such word
data = TensorDataset(tokens, (tokens.sum(1) % 2))
loader = DataLoader(data, batch_size=8)
model = DistributedDataParallel(nn.Sequential(nn.Embedding(40, 16), nn.Flatten(), nn.Linear(96, 2)))
optimizer = torch.optim.SGD(model.parameters(), 0.05)


def step(inputs, targets):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), targets).backward()  # expect: collective-on-some-ranks
    optimizer.step()


for epoch in range(2):
    for inputs, targets in loader:
        try:
            step(inputs, targets)
        except IndexError:
            continue
    dist.barrier()
dist.destroy_process_group()
