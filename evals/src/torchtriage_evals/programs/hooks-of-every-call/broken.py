"""Takes the outputs of inner layers of a network that somebody else has trained."""

import torch
from torch import nn


def make_model():
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Linear(8, 2))


def features(model, inputs, names):
    """What the layers of those names give for INPUTS: name to tensor."""
    found = {}

    def keep(name):
        def hook(module, given, output):
            found[name] = output

        return hook

    for name, layer in model.named_modules():
        if name in names:
            layer.register_forward_hook(keep(name))
    with torch.no_grad():
        model(inputs)
    return found
