"""Weights that a caller may give, or where they lie; and a file that has to fit one model whole."""

import torch
from torch import nn


def build(weights=None):
    net = nn.Linear(4, 4)
    if weights is not None:
        net.load_state_dict(weights)
    return net


class Scorer(nn.Module):
    def __init__(self, size: int = 7, path: str = None):
        super().__init__()
        self.size = size
        if path is not None:
            self.weights, self.vectors = torch.load(path, weights_only=False)

    def forward(self, x):
        return x @ self.vectors.T @ self.weights


def go_on_from(path: str, new_model: nn.Module, old_model: nn.Module):
    state = torch.load(path, map_location="cpu")
    new_model.load_state_dict(state, strict=False)
    old_model.load_state_dict(state, strict=True)
    old_model.eval()
    return new_model, old_model
