"""Accumulates a batch over pieces with a loss scale, and clips the whole gradient."""

import torch
from torch import nn


def train_step(model, optimizer, scaler, pieces, max_norm=1.0):
    """One update from the mean loss over PIECES of equal size."""
    optimizer.zero_grad()
    for inputs, targets in pieces:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs = model(inputs)
        loss = nn.functional.mse_loss(outputs.float(), targets)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
