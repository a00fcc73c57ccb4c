"""Healthy mixtures: one network unscaled, scales by hand, a penalty, accumulation, unscale_ and a step of one's own."""

import torch
from torch import nn

torch.manual_seed(0)
model, other, third = (nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)) for _ in range(3))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
plain = torch.optim.SGD(other.parameters(), 1e-3)
own = torch.optim.SGD(third.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
off = torch.amp.GradScaler("cpu", enabled=False)

for _ in range(12):  # the other network's loss fills gradients of this one, which are cleared; it is not scaled itself
    plain.zero_grad()
    other(model(torch.randn(16, 8)).expand(-1, 8).detach()).pow(2).mean().backward()
    plain.step()
    optimizer.zero_grad(set_to_none=False)
    scaler.scale(other(model(torch.randn(16, 8)).expand(-1, 8)).pow(2).mean()).backward()
    scaler.step(optimizer)
    scaler.update()

for number in range(24):  # a scale by hand for a scaler, and one that is taken out by hand, visibly or not
    x = torch.randn(16, 8)
    own.zero_grad()
    optimizer.zero_grad()
    (model(x).pow(2).mean() * scaler.get_scale()).backward()
    scaler.step(optimizer)
    scaler.update()
    scaler.scale(third(x).pow(2).mean()).backward()
    for parameter in third.parameters():
        grad = parameter.grad if number % 2 else parameter.grad.data
        grad.div_(scaler.get_scale())
    own.step()

for number in range(24):  # accumulation with one unscale_ where it steps, then steps of the script's own
    x = torch.randn(16, 8)
    scaler.scale(model(x).pow(2).mean() / 4).backward()
    if number % 4 == 3:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
    own.zero_grad()
    scaler.scale(third(x).pow(2).mean()).backward()
    scaler.unscale_(own)
    if all(bool(parameter.grad.isfinite().all()) for parameter in third.parameters()):
        own.step()
    scaler.update()

for _ in range(12):  # a penalty on the gradient of scaled outputs; a scaler that is off
    optimizer.zero_grad()
    x = torch.randn(16, 8, requires_grad=True)
    out = model(x)
    (grad,) = torch.autograd.grad(scaler.scale(out.sum()), x, create_graph=True)
    penalty = (grad / scaler.get_scale()).norm(dim=-1).sub(1).pow(2).mean()
    scaler.scale(out.pow(2).mean() + 0.1 * penalty).backward()
    scaler.step(optimizer)
    scaler.update()
    own.zero_grad()
    off.scale(third(torch.randn(16, 8)).pow(2).mean()).backward()
    own.step()
    off.update()
