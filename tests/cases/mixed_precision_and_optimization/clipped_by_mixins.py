"""A mixin fills the hook of a base class: one clips what is still scaled, one unscales first."""

import torch
from torch import nn


class Loop:
    def __init__(self, net, loader):
        self.net, self.loader = net, loader
        self.opt = torch.optim.AdamW(net.parameters())
        self.scaler = torch.amp.GradScaler("cuda")

    def pre_step(self):
        """Runs when the gradients are there."""

    def run(self):
        for x, y in self.loader:
            self.opt.zero_grad()
            with torch.autocast("cuda"):
                loss = nn.functional.mse_loss(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.pre_step()
            self.scaler.step(self.opt)
            self.scaler.update()


class Clip:
    def pre_step(self):
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)  # expect: clip-before-unscale


class Clipped(Clip, Loop):
    pass
