"""Ranks that a loop starts as processes; a program of one process whose helpers ask whether there are several."""

import torch
import torch.distributed as dist
from torch import nn
from torch.multiprocessing import Process
from torch.nn.parallel import DistributedDataParallel


def work(rank, world, epochs):
    dist.init_process_group("gloo", init_method="tcp://localhost:12399", world_size=world, rank=rank)
    net = DistributedDataParallel(nn.Linear(4, 2))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(epochs):
        opt.zero_grad()
        net(torch.randn(8, 4)).sum().backward()
        opt.step()
        if rank == 0:
            torch.save(net.module.state_dict(), f"net-{epoch}.pth")
    torch.save(net.module.state_dict(), "last.pth")  # expect: every-rank-saves
    dist.destroy_process_group()


if __name__ == "__main__":
    jobs = []
    for rank in range(2):
        job = Process(target=work, args=(rank, 2, 3))
        job.start()
        jobs.append(job)
    for job in jobs:
        job.join()
