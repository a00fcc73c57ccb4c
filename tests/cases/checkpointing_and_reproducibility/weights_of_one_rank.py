"""Weights that are loaded and are no checkpoint: one rank has just written them for all. A schedule of one epoch."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel


def work(rank, world, epochs, loader):
    dist.init_process_group("nccl", world_size=world, rank=rank)
    device = torch.device("cuda", rank)
    net = nn.Linear(4, 2).to(device)
    start = os.path.join(tempfile.gettempdir(), "first_weights.pt")
    if rank == 0:
        torch.save(net.state_dict(), start)
    dist.barrier()
    net.load_state_dict(torch.load(start, map_location=device))
    net = DistributedDataParallel(net, device_ids=[rank])
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    sched = optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    for epoch in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
            opt.step()
        sched.step()
        if rank == 0:
            torch.save(net.module.state_dict(), f"net-{epoch}.pth")
    dist.destroy_process_group()


def one_epoch(net, opt, loader, epoch):
    warmup = None
    if epoch == 0:
        warmup = optim.lr_scheduler.LambdaLR(opt, lambda k: min(1.0, (k + 1) / 100))
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        if warmup is not None:
            warmup.step()


def with_a_warmup(loader, resume=""):
    net = nn.Linear(4, 2)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    sched = optim.lr_scheduler.MultiStepLR(opt, milestones=[3, 6])
    first = 0
    if resume:
        saved = torch.load(resume, map_location="cpu")
        net.load_state_dict(saved["net"])
        opt.load_state_dict(saved["opt"])
        sched.load_state_dict(saved["sched"])
        first = saved["epoch"] + 1
    for epoch in range(first, 9):
        one_epoch(net, opt, loader, epoch)
        sched.step()
        state = {"net": net.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict(), "epoch": epoch}
        torch.save(state, f"net-{epoch}.pth")
