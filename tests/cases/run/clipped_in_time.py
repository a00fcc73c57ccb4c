"""Norms after the step, and meant: measured, of another network, of gradients that a later step uses."""

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
x = torch.randn(320, 8)
y = 40 * x.sum(1, keepdim=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for start in range(0, 320, 16):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x[start : start + 16]), y[start : start + 16]).backward()
    optimizer.step()
    clip_grad_norm_(model.parameters(), float("inf"))

accumulated = nn.Linear(8, 1)
optimizer = torch.optim.SGD(accumulated.parameters(), 1e-2)
for number, start in enumerate(range(0, 320, 16)):
    (nn.functional.mse_loss(accumulated(x[start : start + 16]), y[start : start + 16]) / 4).backward()
    if number % 4 == 3:
        optimizer.step()
    clip_grad_norm_(accumulated.parameters(), 1.0)
    if number % 4 == 3:
        optimizer.zero_grad()

actor, critic = nn.Linear(8, 8), nn.Linear(8, 1)
of_actor, of_critic = (torch.optim.SGD(part.parameters(), 1e-2) for part in (actor, critic))
for start in range(0, 320, 16):
    of_critic.zero_grad()
    nn.functional.mse_loss(critic(x[start : start + 16]), y[start : start + 16]).backward()
    clip_grad_norm_(critic.parameters(), 1.0)
    of_critic.step()
    of_actor.zero_grad()
    critic(torch.tanh(actor(x[start : start + 16]))).mean().neg().backward()
    of_actor.step()
    clip_grad_norm_(critic.parameters(), 1e-3)  # what the actor's loss left there is not used by anyone
