"""Centres that each rank moves by its own batches, under a wrapper that was told not to send buffers round."""
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


class Book(nn.Module):
    """Centres that follow the mean of what comes near them."""

    def __init__(self):
        super().__init__()
        self.register_buffer("centres", torch.randn(4, 8))
        self.norm, self.head = nn.BatchNorm1d(8), nn.Linear(8, 2)

    def forward(self, inputs):
        near = torch.cdist(inputs, self.centres).argmin(1)
        if self.training:
            totals, counts = (
                torch.zeros_like(self.centres).index_add_(0, near, inputs),
                torch.bincount(near, minlength=4),
            )
            self.centres += 0.01 * (totals - counts.unsqueeze(1) * self.centres)
        return self.head(self.norm(inputs) + self.centres[near])


sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
model = DistributedDataParallel(Book(), broadcast_buffers=False)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()  # expect: ranks-diverged module centres
dist.destroy_process_group()
