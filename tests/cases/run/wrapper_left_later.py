"""After a validation the name of the model means the module inside the wrapper, and training goes on with that."""

import tempfile

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(3):
        for _ in range(12):
            x = torch.randn(32, 8)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), (x.sum(1) > 0).long()).backward()  # expect: wrapper-bypassed
            optimizer.step()
        model = model.module if isinstance(model, DistributedDataParallel) else model
        with torch.no_grad():
            print((model(x).argmax(1) == (x.sum(1) > 0)).float().mean().item())
    distributed.destroy_process_group()
