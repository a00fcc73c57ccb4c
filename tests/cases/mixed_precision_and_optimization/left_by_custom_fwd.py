"""A loss that leaves autocast by custom_fwd, or by a context manager."""

import torch
from torch import nn
import torch.nn.functional as F
from contextlib import contextmanager


@contextmanager
def full_precision():
    with torch.autocast("cuda", enabled=False):
        yield


class Loss(nn.Module):
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.float32)
    def forward(self, p, t):
        return F.binary_cross_entropy(p, t)


def train(net, loader, scaler, opt):
    crit = Loss()
    for x, y in loader:
        opt.zero_grad()
        with torch.autocast("cuda"):
            p = net(x).sigmoid()
            with full_precision():
                loss = F.binary_cross_entropy(p.float(), y)
            other = crit(p, y)
        scaler.scale(loss + other).backward()
        scaler.step(opt)
        scaler.update()
