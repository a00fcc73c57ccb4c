"""The loss is computed by the module inside the wrapper, in a method of a trainer; the validation does so by right."""

import tempfile

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net):
        self.net = DistributedDataParallel(net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), 1e-2)

    def loss(self, x, y):
        core = self.net.module
        return nn.functional.cross_entropy(core(x), y)  # expect: wrapper-bypassed

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        distributed.all_reduce(loss.detach().clone())
        loss.backward()
        self.optimizer.step()


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    trainer = Trainer(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)))
    for _ in range(40):
        x = torch.randn(32, 8)
        trainer.step(x, (x.sum(1) > 0).long())
        with torch.no_grad():
            trainer.net.module(x)
    distributed.destroy_process_group()
