"""Targets that the host writes by its labels, and one that is all zeros."""

import torch
from torch import nn


def train(model, loader, opt, device, classes):
    model.to(device)
    for x, labels in loader:
        target = torch.zeros(len(labels), classes).scatter_(1, labels.unsqueeze(1), 1).to(device)
        noise = torch.zeros(len(labels), classes).to(device)  # expect: created-then-moved
        loss = nn.functional.mse_loss(model(x.to(device)) + noise, target)
        opt.zero_grad()
        loss.backward()
        opt.step()
