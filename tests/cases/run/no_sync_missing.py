"""Four micro-batches a step, and every one of them averages the gradients."""

import tempfile

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for number in range(80):
        x = torch.randn(8, 8)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean() / 4
        loss.backward()  # expect: no-sync-missing
        if number % 4 == 3:
            optimizer.step()
            optimizer.zero_grad()
    distributed.destroy_process_group()
