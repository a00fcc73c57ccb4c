"""More ranks than there are cores: they wait for a CPU and for each other, and nobody is to blame."""
# ranks: 4

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("gloo")
torch.manual_seed(0)
x = torch.randn(4000, 32)
data = TensorDataset(x, (x[:, 0] * x[:, 1] > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=20, sampler=sampler)
model = DistributedDataParallel(
    nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 2))
)
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        if dist.get_rank() == 0 and optimizer.param_groups[0]["lr"] < 0:
            print("never")
dist.destroy_process_group()
