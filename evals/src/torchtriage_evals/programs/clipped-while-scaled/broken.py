"""One step of training with a loss scale and clipped gradients."""

import torch
from torch import nn


def make_scaler():
    return torch.amp.GradScaler("cpu", init_scale=65536.0)


def train_step(model, optimizer, scaler, inputs, targets, max_norm=1.0):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(inputs)
    loss = nn.functional.mse_loss(outputs.float(), targets)
    scaler.scale(loss).backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()
