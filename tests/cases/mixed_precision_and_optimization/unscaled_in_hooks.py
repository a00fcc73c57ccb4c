"""Hooks that subclasses fill: what unscales, scales or divides stands in the method that overrides."""

import torch
from torch import nn


class Base:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
        self.scaler = torch.amp.GradScaler("cuda")

    def after_backward(self):
        pass

    def run(self):
        for x, y in self.loader:
            self.opt.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = nn.functional.mse_loss(self.model(x), y)
            self.scaler.scale(loss).backward()
            self.after_backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.scaler.step(self.opt)
            self.scaler.update()


class Unscaling(Base):
    def after_backward(self):
        self.scaler.unscale_(self.opt)


Unscaling(nn.Linear(4, 4).cuda(), []).run()
