"""models[k] and optimizers[k] belong together: what unscales the one unscales the gradients of the other."""

import torch
from torch import nn
from torch.amp import GradScaler, autocast


def fit(models, loaders, steps):
    scaler = GradScaler("cuda")
    optimizers = []
    for model in models:
        optimizers.append(torch.optim.AdamW(model.parameters(), lr=1e-4))
    readers = [iter(loader) for loader in loaders]
    for _ in range(steps):
        for k in range(len(models)):
            model = models[k]
            optimizer = optimizers[k]
            x, y = next(readers[k])
            with autocast("cuda"):
                loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
