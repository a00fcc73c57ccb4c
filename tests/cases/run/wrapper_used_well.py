"""Passes past a wrapper that are meant: evaluation, an average of the weights, accumulation, two losses, a GAN whose
generator reaches the module of its critic, gradients that are averaged by hand.
"""

import copy
import tempfile
from contextlib import nullcontext

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def make(width, out):
    return nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, out))


def accumulate(model):
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    smooth = copy.deepcopy(model.module)
    for number in range(60):
        x = torch.randn(8, 8)
        last = number % 4 == 3
        with nullcontext() if last else model.no_sync():
            ((model(x) - x.sum(1, keepdim=True)).pow(2).mean() / 4).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for slow, fast in zip(smooth.parameters(), model.module.parameters()):
                    slow.lerp_(fast, 0.1)
                model.module(x)


def last_one_averages(model):
    """The micro-batches before the last go to the module: their gradients are averaged with the last one's."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for number in range(40):
        x = torch.randn(8, 8)
        last = number % 2
        ((model if last else model.module)(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()


def adversaries(maker, critic):
    by_maker = torch.optim.Adam(maker.parameters(), 1e-3)
    by_critic = torch.optim.Adam(critic.parameters(), 1e-3)
    for _ in range(20):
        by_critic.zero_grad()
        fake = maker(torch.randn(16, 4))
        critic(torch.randn(16, 8) + 2).mean().neg().backward()
        critic(fake.detach()).mean().backward()
        by_critic.step()
        by_maker.zero_grad()
        critic.module(fake).mean().neg().backward()
        by_maker.step()


def by_hand(model):
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for _ in range(20):
        x = torch.randn(8, 8)
        optimizer.zero_grad()
        (model.module(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        for parameter in model.parameters():
            distributed.all_reduce(parameter.grad)
            parameter.grad /= distributed.get_world_size()
        optimizer.step()


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
    accumulate(DistributedDataParallel(make(8, 1)))
    last_one_averages(DistributedDataParallel(make(8, 1)))
    adversaries(DistributedDataParallel(make(4, 8)), DistributedDataParallel(make(8, 1)))
    by_hand(DistributedDataParallel(make(8, 1)))
    distributed.destroy_process_group()
