"""Ranks that load: to the saved device, to their own, or only the first of them."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(local_rank):
    dist.init_process_group("nccl")
    torch.cuda.set_device(local_rank)


def everywhere(model: nn.Module, path, local_rank):
    setup(local_rank)
    model.cuda(local_rank)
    state = torch.load(path)  # expect: loads-to-saved-device
    model.load_state_dict(state["model"])
    return DDP(model, device_ids=[local_rank]), state["epoch"]


# Look-alikes.


def to_its_own(model: nn.Module, path, other, local_rank):
    model.load_state_dict(torch.load(path, map_location=f"cuda:{local_rank}")["model"])
    model.load_state_dict(torch.load(other, "cpu")["model"])
    return DDP(model.cuda(local_rank), device_ids=[local_rank])


def first_rank(model: nn.Module, weights, rank):
    if rank == 0:
        model.load_state_dict(torch.load(weights))
    return DDP(model.cuda(rank), device_ids=[rank])


def either(model: nn.Module, resume, gpu):
    if gpu is None:
        checkpoint = torch.load(resume)
    else:
        checkpoint = torch.load(resume, map_location=f"cuda:{gpu}")
    model.load_state_dict(checkpoint["model"])


def data_of(folder):
    samples = torch.load(folder / "samples.pt")
    return samples["inputs"], samples["targets"]
