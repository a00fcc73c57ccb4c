"""Gradients cleared between a backward and a step, and meant: SAM, a warm-up, dropped batches, gradients put back."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)


def loss(model):
    return nn.functional.mse_loss(model(x), y)


model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for _ in range(12):  # sharpness-aware minimisation: the first gradient only says where to look
    loss(model).backward()
    moves = [0.01 * p.grad / (p.grad.norm() + 1e-12) for p in model.parameters()]
    with torch.no_grad():
        for parameter, move in zip(model.parameters(), moves, strict=True):
            parameter += move
    optimizer.zero_grad()
    loss(model).backward()
    with torch.no_grad():
        for parameter, move in zip(model.parameters(), moves, strict=True):
            parameter -= move
    optimizer.step()
    optimizer.zero_grad()

encoder, head = nn.Linear(8, 8), nn.Linear(8, 1)
both = nn.Sequential(encoder, head)
optimizers = [torch.optim.SGD(part.parameters(), 1e-2) for part in both]
for number in range(12):  # the encoder stands still at first
    loss(both).backward()
    if number < 6:
        optimizers[0].zero_grad()
    for each in optimizers:
        each.step()
        each.zero_grad()

judged = nn.Linear(8, 1)
of_judged = torch.optim.Adam(judged.parameters(), 1e-2)
for number in range(12):  # gradients kept, cleared and put back
    loss(judged).backward()
    kept = [p.grad.clone() for p in judged.parameters()]
    of_judged.zero_grad()
    for parameter, gradient in zip(judged.parameters(), kept, strict=True):
        parameter.grad = gradient.sign()
    of_judged.step()
    of_judged.zero_grad()
    if number % 3 == 0:  # a batch that is dropped
        loss(judged).backward()
        of_judged.zero_grad()
