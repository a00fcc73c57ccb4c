"""torch.jit.trace() of a model gives a model, which to() moves in place; of a tensor to() gives another one."""

import torch
from torch import nn


def traced(model: nn.Module, image, device):
    found = torch.jit.trace(model.eval(), image)
    found.to(device)
    return found


def moved(image: torch.Tensor, device):
    features = torch.relu(image)
    features.to(device)  # expect: result-dropped
    return features.unsqueeze(0)
