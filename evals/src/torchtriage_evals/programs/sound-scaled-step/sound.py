"""One step of training with a loss scale, gradients clipped, and a schedule that follows the optimizer."""

import torch
from torch import nn


def train_step(model, optimizer, scaler, schedule, inputs, targets, max_norm=1.0):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(inputs)
        loss = nn.functional.mse_loss(outputs.float(), targets)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    if scaler.get_scale() >= scale:
        schedule.step()
    return loss.item()
