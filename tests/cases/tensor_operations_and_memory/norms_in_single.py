"""float() changes a module in place."""

import torch
from torch import nn


def keep_norms_single(layer):
    if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
        layer.float()
    for part in layer.children():
        keep_norms_single(part)
    return layer


def halve(net):
    return nn.Sequential(keep_norms_single(net.half()))
