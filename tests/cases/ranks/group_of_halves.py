"""Two pairs of ranks: each pair trains a model of its own, on batches that the pairs share."""
# ranks: 4

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
pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
torch.manual_seed(10 + rank // 2)
sampler = DistributedSampler(data, num_replicas=2, rank=rank % 2)
loader = DataLoader(data, batch_size=16, sampler=sampler)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2)), process_group=pairs[rank // 2]
)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
