"""Models that are on their device when they are wrapped, or are moved in another branch."""

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from mylib.models import build_model


def usual(model: nn.Module, device: torch.device):
    model = model.to(device)
    model = DDP(model)
    return model


def in_the_call(model: nn.Module, local_rank: int):
    model = DDP(model.cuda(local_rank), device_ids=[local_rank])
    model.to(memory_format=torch.channels_last)
    return model


def one_branch_each(model: nn.Module, args):
    if args.distributed:
        model.cuda(args.gpu)
        model = DDP(model, device_ids=[args.gpu])
    elif args.gpu is not None:
        model = model.cuda(args.gpu)
    else:
        model = nn.DataParallel(model).cuda()  # expect: data-parallel-used
    return model


def once_more(args):
    model = nn.Linear(3, 3).to(args.device)
    model = DDP(model)
    return model.to(args.device)


def cast_later(model: nn.Module, device, dtype: torch.dtype):
    model.to(device)
    model = DDP(model)
    model.to(torch.bfloat16)
    model.to(dtype)
    return model


def on_the_cpu():
    model = nn.Linear(3, 3)
    model = DDP(model)
    model = model.to("cpu")
    return model


def built_elsewhere(args):
    model = build_model(args)
    model = DDP(model, device_ids=[args.local_rank])
    model.cuda()
    return model


class Placed(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.to(device)

    def forward(self, inputs):
        return self.layer(inputs)


def places_itself(device):
    model = Placed("cuda")
    model = DDP(model)
    model.to(device)
    return model


def prepare(model, device):
    model.to(device)
    return model


def prepared(device):
    model = nn.Linear(3, 3)
    prepare(model, device)
    model = DDP(model)
    model.to(device)
    return model


def wrap(model, device):
    model = DDP(model)
    model.to(device)
    return model


def wrapped_after(device):
    net = nn.Linear(3, 3)
    net.cuda()
    return wrap(net, device)
