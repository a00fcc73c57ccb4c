"""Wrappers that others hold: a system of modules that calls one, and a compiled one."""

import tempfile

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


class System(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net, self.scale = DistributedDataParallel(net), nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.net(x) * self.scale


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    compiled = torch.compile(DistributedDataParallel(make()), backend="eager")
    for model in (System(make()), compiled):
        optimizer = torch.optim.SGD(model.parameters(), 1e-2)
        for _ in range(20):
            x = torch.randn(8, 8)
            optimizer.zero_grad()
            (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
            optimizer.step()
    distributed.destroy_process_group()
