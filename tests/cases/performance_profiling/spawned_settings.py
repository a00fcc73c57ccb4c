"""A process that is spawned has settings of its own."""

import argparse
import random

import torch
import torch.backends.cudnn as cudnn
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", default=None, type=int)
    args = parser.parse_args()
    if args.seed is not None:
        random.seed(args.seed)
        torch.manual_seed(args.seed)
        cudnn.deterministic = True
    mp.spawn(work, nprocs=2, args=(args,))


def work(rank, args):
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29511", rank=rank, world_size=2)
    torch.cuda.set_device(rank)
    cudnn.benchmark = True
    net = nn.parallel.DistributedDataParallel(nn.Conv2d(3, 8, 3).cuda(), device_ids=[rank])
    net(torch.randn(2, 3, 8, 8, device="cuda")).sum().backward()


if __name__ == "__main__":
    main()
