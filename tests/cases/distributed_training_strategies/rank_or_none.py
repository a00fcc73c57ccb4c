"""`rank` is None in a run of one process, and a number on every rank of a job of several."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def one_epoch(model, optimizer, loader, rank=None):
    total = 0.0
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if rank is not None:
        t = torch.tensor(total)
        dist.all_reduce(t, op=dist.ReduceOp.SUM)
        total = t.item() / dist.get_world_size()
    if rank:
        dist.barrier()  # expect: collective-on-some-ranks
    return total


def alone():
    model = nn.Linear(3, 1)
    return one_epoch(model, torch.optim.SGD(model.parameters(), lr=0.1), [torch.randn(2, 3)], None)


def worker(rank, world):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29533", rank=rank, world_size=world)
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
    print(one_epoch(model, torch.optim.SGD(model.parameters(), lr=0.1), [torch.randn(2, 3)], rank))
    dist.destroy_process_group()


if __name__ == "__main__":
    alone()
    mp.spawn(worker, args=(2,), nprocs=2)
