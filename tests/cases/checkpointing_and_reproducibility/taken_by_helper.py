"""A helper that takes the state that is kept."""

import torch
from torch import nn


def snapshot(model):
    return model.state_dict()  # expect: best-state-aliased


def train(net, loader, val, n):
    opt = torch.optim.Adam(net.parameters())
    best_f1, best_weights = 0.0, None
    for _ in range(n):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
        f1 = val(net)
        if f1 > best_f1:
            best_f1, best_weights = f1, snapshot(net)
    net.load_state_dict(best_weights)
    return net
