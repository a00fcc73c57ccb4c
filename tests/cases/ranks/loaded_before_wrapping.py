"""Rank 0 takes up a checkpoint and the wrapper sends it round; rank 0 keeps an average of the weights beside."""
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
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
if rank == 0:
    net.load_state_dict({name: value + 0.1 for name, value in net.state_dict().items()})
model = DistributedDataParallel(net)
average = torch.optim.swa_utils.AveragedModel(
    model.module, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
)
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if rank == 0:
            average.update_parameters(model.module)
    if rank == 0:
        with torch.no_grad():
            average.eval()
            print((average(x).argmax(1) == data.tensors[1]).float().mean().item())
    dist.barrier()
dist.destroy_process_group()
