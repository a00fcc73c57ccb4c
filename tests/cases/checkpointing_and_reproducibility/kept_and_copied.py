"""A state that is copied under its own name."""

import torch
from torch import nn, optim

torch.manual_seed(0)


def train(model, loader, val, epochs):
    """best weights: saved inside helper that copies."""
    opt = optim.Adam(model.parameters())
    best_loss, best = 1e9, None
    for _e in range(epochs):
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            opt.step()
        v = val(model)
        if v < best_loss:
            best_loss = v
            best = model.state_dict()
            best = {k: t.clone() for k, t in best.items()}
    model.load_state_dict(best)
    return model
