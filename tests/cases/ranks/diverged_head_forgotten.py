"""The average by hand goes over the body and forgets the head."""
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
body, head = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 2)
model = nn.Sequential(body, head)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        for parameter in body.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
            parameter.grad.div_(dist.get_world_size())
        optimizer.step()  # expect: ranks-diverged module 1.weight
dist.destroy_process_group()
