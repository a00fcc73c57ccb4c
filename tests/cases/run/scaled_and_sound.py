"""Clipping where it belongs, on purpose with a scaled limit, of a network that no scaler handles; two skips at the start."""

import torch
from torch import nn

torch.manual_seed(0)
model, beside = nn.Linear(8, 1), nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
plain = torch.optim.SGD(beside.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
off = torch.amp.GradScaler("cpu", enabled=False)
for step in range(40):
    optimizer.zero_grad()
    plain.zero_grad()
    x = torch.randn(16, 8)
    scaler.scale(model(x).pow(2).mean()).backward()
    off.scale(beside(x).pow(2).mean()).backward()
    nn.utils.clip_grad_norm_(beside.parameters(), 0.01)
    off.step(plain)
    off.update()
    if step < 2:
        model.weight.grad.fill_(float("inf"))  # as a first scale that is too high does
    if step % 2:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    else:
        nn.utils.clip_grad_norm_(model.parameters(), 0.1 * scaler.get_scale())
    scaler.step(optimizer)
    scaler.update()
