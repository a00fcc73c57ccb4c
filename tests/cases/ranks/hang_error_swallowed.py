"""On rank 1 one batch is broken; its error is caught, the step left out, and the ranks never meet again."""
# ranks: 2
# hang: 3

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)


def batch(number):
    x = torch.randn(16, 8 if (number, rank) != (20, 1) else 7)
    return x, x.sum(1, keepdim=True)


for number in range(40):
    x, y = batch(number)
    optimizer.zero_grad()
    try:
        loss = nn.functional.mse_loss(model(x), y)
    except RuntimeError:
        continue
    loss.backward()  # expect: uneven-steps rank 0
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
