"""Device numbers that settings, data classes and properties hold."""

import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist


@dataclass
class Place:
    rank: int = field(default_factory=lambda: int(os.environ["RANK"]))
    local_rank: int = field(default_factory=lambda: int(os.environ["LOCAL_RANK"]))

    @property
    def device(self):
        return torch.device("cuda", self.rank)  # expect: global-rank-as-device

    @property
    def right(self):
        return torch.device("cuda", self.local_rank)


def init(args):
    args.rank = int(os.environ["RANK"])
    args.gpu = args.rank
    dist.init_process_group("nccl", rank=args.rank)
    torch.cuda.set_device(args.gpu)  # expect: global-rank-as-device


def rank_or_first():
    if not dist.is_available() or not dist.is_initialized():
        return 0
    return dist.get_rank()


class Trainer:
    def __init__(self):
        self.rank = rank_or_first()
        self.device = torch.device(f"cuda:{self.rank}")  # expect: global-rank-as-device


def by_text():
    torch.cuda.set_device("cuda:" + os.environ["RANK"])  # expect: global-rank-as-device


def spread():
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())


def by_local(opt):
    opt.local = int(os.environ.get("LOCAL_RANK", 0))
    torch.cuda.set_device(opt.local)
    torch.cuda.set_device("cuda:" + os.environ["LOCAL_RANK"])
