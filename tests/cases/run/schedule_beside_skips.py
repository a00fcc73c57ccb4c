"""Healthy: a schedule that asks the scale, one by epochs, one skip at the start, and a metric's own schedule."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))


def run(init_scale: float, kind: str) -> None:
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    plateau, linear = torch.optim.lr_scheduler.ReduceLROnPlateau, torch.optim.lr_scheduler.LinearLR
    scheduler = plateau(optimizer) if kind == "metric" else linear(optimizer, 0.1, total_iters=20)
    scaler = torch.amp.GradScaler("cpu", init_scale=init_scale)
    for number in range(1, 41):
        optimizer.zero_grad()
        x = torch.randn(16, 8)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x), x[:, :1].half())
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if kind == "metric":
            scheduler.step(loss.item())
        elif kind == "plain" or (kind == "epochs" and number % 8 == 0) or (kind == "asks" and scaler.get_scale() >= before):
            scheduler.step()


run(2.0**24, "asks")
run(2.0**24, "epochs")
run(2.0**24, "metric")
run(2.0**17, "plain")
