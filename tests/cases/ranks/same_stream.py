"""A stream that every rank reads from its beginning, and gradients averaged by hand."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)


class Stream(IterableDataset):
    """Samples drawn from a generator, as from a file that is read once."""

    def __iter__(self):
        draw = torch.Generator().manual_seed(3)
        for number in range(1600):
            sample = torch.randn(8, generator=draw)
            yield sample, int(sample.sum() > 0)


loader = DataLoader(Stream(), batch_size=16)  # expect: same-data-on-ranks
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for inputs, targets in loader:
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs), targets).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    optimizer.step()
dist.destroy_process_group()
