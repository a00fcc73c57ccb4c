"""Models that are called without the wrapper that a helper took off, and by other methods than forward."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Linear(10, 4), nn.Linear(4, 10)

    def error(self, x):
        return (self(x) - x).pow(2).mean()

    def forward(self, x):
        return self.up(self.down(x))


def unwrap(model):
    return model.module if hasattr(model, "module") else model


def setup():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    return DDP(Coder().to(local), device_ids=[local])


def by_method(batches):
    model = setup()
    optimizer = torch.optim.Adam(model.parameters())
    for x in batches:
        optimizer.zero_grad()
        loss = model.module.error(x)  # expect: wrapper-bypassed
        loss.backward()
        optimizer.step()


def by_helper(batches):
    model = setup()
    net = unwrap(model)
    optimizer = torch.optim.Adam(model.parameters())
    for x in batches:
        optimizer.zero_grad()
        loss = net(x).mean()  # expect: wrapper-bypassed
        loss.backward()
        optimizer.step()


def right(batches):
    model = setup()
    net = unwrap(model)
    optimizer = torch.optim.Adam(model.parameters())
    for x in batches:
        optimizer.zero_grad()
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            print(net.error(x), model.module.error(x))
    torch.save(unwrap(model).state_dict(), "coder.pt") if dist.get_rank() == 0 else None
