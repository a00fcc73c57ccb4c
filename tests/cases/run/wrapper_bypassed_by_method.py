"""The loss is a method of the wrapped model, called past the wrapper."""

import tempfile

import torch
import torch.distributed as dist
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x):
        return self.up(torch.tanh(self.down(x)))

    def training_loss(self, x):
        return (self(x) - x).pow(2).mean()


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=0, world_size=1)
    model = nn.parallel.DistributedDataParallel(Autoencoder())
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    x = torch.randn(64, 8)
    for _ in range(40):
        optimizer.zero_grad()
        loss = model.module.training_loss(x)  # expect: wrapper-bypassed
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
