"""A pipeline of two stages: both ranks go through the same batches, each trains its own half of the model."""
# ranks: 2

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
x = torch.randn(512, 8)
data = TensorDataset(x, (x.sum(1) > 0).long())
loader = DataLoader(data, batch_size=32, shuffle=True, generator=torch.Generator().manual_seed(1))
halves = [nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))]
stage = PipelineStage(halves[rank], rank, 2, torch.device("cpu"))
schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=nn.functional.cross_entropy)
optimizer = torch.optim.AdamW(halves[rank].parameters(), 1e-2)
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        if rank == 0:
            schedule.step(inputs)
        else:
            schedule.step(target=targets, losses=[])
        optimizer.step()
dist.destroy_process_group()
