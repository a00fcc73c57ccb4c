"""Processes of one machine only: their rank is the number of their device."""

import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(index: int, size: int):
    os.environ["RANK"] = str(index)
    dist.init_process_group("nccl", rank=index, world_size=size)
    torch.cuda.set_device(dist.get_rank())
    print(torch.zeros(1).cuda())


if __name__ == "__main__":
    mp.spawn(worker, args=(torch.cuda.device_count(),), nprocs=torch.cuda.device_count())
