"""A recorder whose state is written at once, and one that a single evaluation fills."""

import torch
from torch import nn


class Recorder:
    best = -1.0

    def consider(self, score, net: nn.Module):
        if score <= self.best:
            return
        self.best = score
        self.kept = net.state_dict()


def fit(net, loader, val):
    opt, recorder = torch.optim.RAdam(net.parameters()), Recorder()
    for _ in range(30):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
        recorder.consider(val(net), net)
        torch.save(recorder.kept, "best.pt")
