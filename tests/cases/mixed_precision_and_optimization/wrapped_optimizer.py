"""unscale_ gets an object of the program's own, which has the parameters of an optimizer."""

import torch
from torch import nn


class Noam:
    def __init__(self, width, optimizer):
        self.optimizer, self.width, self.count = optimizer, width, 0

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def step(self):
        self.count += 1
        for group in self.param_groups:
            group["lr"] = self.width**-0.5 * min(self.count**-0.5, self.count * 4000**-1.5)
        self.optimizer.step()


def train(model, batches):
    optimizer = Noam(32, torch.optim.AdamW(model.parameters(), lr=0))
    scaler = torch.amp.GradScaler("cuda")
    for samples in batches:
        model.zero_grad()
        for x, y in samples:
            with torch.autocast("cuda"):
                loss = nn.functional.cross_entropy(model(x), y, reduction="sum")
            scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


if __name__ == "__main__":
    train(nn.Linear(4, 4).cuda(), [])
