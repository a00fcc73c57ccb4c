"""The newest file of a shared folder, through a partial of torch.load."""

import functools
import glob
import os

import torch
from torch import nn

ZOO = os.environ["MODEL_ZOO"]
load = functools.partial(torch.load, map_location="cpu", weights_only=False)  # expect: pickle-trusted
safe = functools.partial(torch.load, map_location="cpu", weights_only=True)


def newest(tag):
    found = sorted(glob.glob(os.path.join(ZOO, tag, "*.pth")), key=os.path.getmtime)
    return found[-1]


def warm(net: nn.Module, tag):
    net.load_state_dict(load(newest(tag))["net"])
    return net


def careful(net: nn.Module, tag):
    net.load_state_dict(safe(newest(tag))["net"])
    return net


def fixtures():
    return [load(each) for each in sorted(glob.glob("tests/data/*.pth"))]
