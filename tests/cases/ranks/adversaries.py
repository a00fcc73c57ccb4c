"""A generator whose noise has one seed on all ranks, a critic, and real samples that are divided."""
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
maker = DistributedDataParallel(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8)))
critic = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
makes, judges = torch.optim.Adam(maker.parameters(), 1e-3), torch.optim.Adam(critic.parameters(), 1e-3)
for epoch in range(4):
    for real, _ in loader:
        fake = maker(torch.randn(len(real), 4))
        judges.zero_grad()
        both = critic(torch.cat([real, fake.detach()]))
        wanted = torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])
        nn.functional.binary_cross_entropy_with_logits(both, wanted).backward()
        judges.step()
        makes.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(critic(fake), torch.ones(len(real), 1)).backward()
        makes.step()
dist.destroy_process_group()
