"""Models that come to their device after they were wrapped."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torchvision.models import resnet18


def setup(model: nn.Module) -> nn.Module:
    dist.init_process_group(backend="nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    model = model.to(local_rank)  # expect: moved-after-wrapping
    return model


def main(args):
    device = torch.device("cuda", args.local_rank)
    net = resnet18(num_classes=10)
    ddp_net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(ddp_net.parameters(), lr=0.1)
    ddp_net.cuda(args.local_rank)  # expect: moved-after-wrapping
    return ddp_net, optimizer, device


class Trainer:
    def __init__(self, model_class, local_rank: int):
        self.device = torch.device(f"cuda:{local_rank}")
        self.model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))
        self.model = DistributedDataParallel(self.model)
        self.model.to(self.device)  # expect: moved-after-wrapping
