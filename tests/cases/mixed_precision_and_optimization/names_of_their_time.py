"""Old names beside a module that is gone since before they were deprecated."""

import torch
from torch._six import inf
from torch.cuda.amp import GradScaler


class Scaler:
    def __init__(self):
        self.scaler = GradScaler()

    def __call__(self, loss, optimizer, parameters, clip=inf):
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(parameters, clip)
        self.scaler.step(optimizer)
        self.scaler.update()
