"""The smaller of two tensors is a tensor, whose mean is read."""

import torch
from torch import nn


def train(model: nn.Module, optimizer, loader, losses: list, fractions: list, values: list):
    model.to("cuda")
    for inputs, old, gains in loader:
        inputs, old, gains = inputs.to("cuda"), old.to("cuda"), gains.to("cuda")
        ratio = torch.exp(model(inputs) - old)
        loss = -torch.min(gains * ratio, gains * torch.clamp(ratio, 0.8, 1.2)).mean()
        losses.append(loss.item())  # expect: sync-bound
        fractions.append(torch.mean((torch.abs(ratio - 1) > 0.2).float()).item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(ratio.std().item())
